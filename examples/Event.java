/* SPDX-License-Identifier: BSD-2-Clause */
/* event.h in hello-ebpf's annotations. */
import me.bechberger.ebpf.annotations.Size;
import me.bechberger.ebpf.annotations.Type;
import me.bechberger.ebpf.annotations.Unsigned;
import me.bechberger.ebpf.type.Enum;

public class Event {
    private static final int FILE_NAME_LEN = 256;
    private static final int TASK_COMM_LEN = 16;

    @Type(name = "kind")
    enum Kind implements Enum<Kind> {
        KIND_OPEN, @EnumMember(value = 2) KIND_READ, KIND_CLOSE
    }

    @Type(name = "event")
    record OpenEvent(@Unsigned int pid, @Size(FILE_NAME_LEN) String filename, @Size(TASK_COMM_LEN) String comm) {
    }

    /* hello-ebpf pads nothing at the end, so that the padding of C has to be a member. */
    @Type(name = "position")
    record Position(@Unsigned long offset, @Unsigned byte whence, @Size(7) byte[] pad) {
    }

    @Type(name = "padded_event")
    record PaddedEvent(byte c, long l, int i, @Unsigned long x) {
    }

    @Type(name = "access")
    record Access(OpenEvent event, Kind kind, Position at, boolean failed, int error, @Unsigned long whenNs) {
    }
}
