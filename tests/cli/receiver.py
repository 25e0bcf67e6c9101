# SPDX-License-Identifier: BSD-2-Clause
"""A server of profiles on the loopback interface, which answers as Pyroscope, Parca and OTLP's
collectors do, or as told."""

import base64
import gzip
import http.server
import json
import socket
import threading

import otlp

PUSH = "/push.v1.PusherService/Push"
WRITE = "/api/profiles/writeraw"
EXPORT = "/v1development/profiles"
TYPES = {PUSH: "application/proto", WRITE: "application/json", EXPORT: "application/x-protobuf"}
BODIES = {PUSH: b"", WRITE: b"{}", EXPORT: b""}
# What hangs has to end.
SECONDS = 60


def fields(data):
    """The fields of a message of protocol buffers: (number, value), bytes for those with a length.
    """
    at, found = 0, []

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            found.append((key >> 3, varint()))
        else:
            assert key & 7 == 2, f"wire type {key & 7}"
            n = varint()
            assert at + n <= len(data), "a field is longer than its message"
            found.append((key >> 3, data[at:at + n]))
            at += n
    return found


def all_of(message, number):
    return [value for key, value in fields(message) if key == number]


def pyroscope(body):
    """Labels, id and profile of a PushRequest."""
    series, = all_of(body, 1)
    labels = {}
    for pair in all_of(series, 1):
        name, value = all_of(pair, 1)[0].decode(), all_of(pair, 2)
        assert name not in labels, "a label is there twice"
        labels[name] = value[0].decode() if value else ""
    sample, = all_of(series, 2)
    return labels, all_of(sample, 2)[0].decode(), all_of(sample, 1)[0]


def parca(body):
    series, = json.loads(body)["series"]
    labels = {label["name"]: label["value"] for label in series["labels"]["labels"]}
    assert len(labels) == len(series["labels"]["labels"]), "a label is there twice"
    sample, = series["samples"]
    return labels, None, base64.b64decode(sample["rawProfile"], validate=True)


def profile(raw):
    """What a test compares of a profile in pprof's format: its types, and its stacks with their
    values."""
    data = gzip.decompress(raw)
    strings = [text.decode() for text in all_of(data, 6)]
    types = [
        tuple(strings[(all_of(t, number) or [0])[0]] for number in (1, 2)) for t in all_of(data, 1)
    ]
    names = {all_of(f, 1)[0]: strings[all_of(f, 2)[0]] for f in all_of(data, 5)}
    locations = {}
    for location in all_of(data, 4):
        locations[all_of(location,
                         1)[0]] = [names[all_of(line, 1)[0]] for line in all_of(location, 4)]
    stacks = {}
    for sample in all_of(data, 2):
        stack = []
        for location in varints(b"".join(all_of(sample, 1))):
            stack += locations[location]
        values = tuple(varints(b"".join(all_of(sample, 2))))
        name = ";".join(reversed(stack))
        # Other threads, and other addresses of the same functions.
        stacks[name] = tuple(a + b for a, b in zip(stacks.get(name, (0,) * len(values)), values))
    return {"types": types, "stacks": stacks, "time_ns": (all_of(data, 9) or [0])[0]}


def varints(data):
    value = shift = 0
    for byte in data:
        value |= (byte & 0x7f) << shift
        shift += 7
        if byte < 0x80:
            yield value
            value = shift = 0


def collector(body):
    """Attributes of the resource, id of the first profile, and the request, which is not
    compressed."""
    raw = gzip.decompress(body)
    request = otlp.decode("ExportProfilesServiceRequest", raw)
    resource, = request["resource_profiles"]
    scope, = resource["scope_profiles"]
    key = scope["profiles"][0]["profile_id"].hex()
    return otlp.attributes(resource["resource"]["attributes"]), "-".join(
        (key[:8], key[8:12], key[12:16], key[16:20], key[20:])), raw


DECODERS = {PUSH: pyroscope, WRITE: parca, EXPORT: collector}


class Request:
    def __init__(self, path, headers, body):
        self.path, self.headers, self.body = path, headers, body
        self.kind = next(kind for kind in TYPES if path.endswith(kind))
        assert headers["Content-Type"] == TYPES[self.kind], headers["Content-Type"]
        assert headers["Content-Encoding"] == ("gzip" if self.kind == EXPORT else
                                               None), headers["Content-Encoding"]
        self.labels, self.id, self.raw = DECODERS[self.kind](body)
        self.key = headers["Idempotency-Key"]

    def profile(self):
        return profile(self.raw)


class Receiver:
    """ Takes what comes. `plan` is a list of what to do with the next requests: a number is a
    status; a function gets the handler and the request, and answers itself or does not. Requests
    that it said it took are in `taken`, all in `seen`.
    """

    def __init__(self, plan=(), tls=None):
        self.plan, self.seen, self.taken, self.arrived = list(plan), [], [], threading.Event()
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = SECONDS

            def log_message(self, *_):
                pass

            def do_POST(self):
                receiver.handle(self)

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass  # a sender that was killed, or gave up

        self.server = Server(("127.0.0.1", 0), Handler)
        if tls:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        scheme = "https" if tls else "http"
        self.url = f"{scheme}://127.0.0.1:{self.server.server_address[1]}"

    def __enter__(self):
        self.thread = threading.Thread(target=self.server.serve_forever,
                                       kwargs={"poll_interval": 0.05}, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(SECONDS)

    def handle(self, handler):
        size = int(handler.headers["Content-Length"])
        body = handler.rfile.read(size)
        if len(body) < size:
            return  # the sender was killed
        request = Request(handler.path, handler.headers, body)
        self.seen.append(request)
        step = self.plan.pop(0) if self.plan else 200
        self.arrived.set()
        if callable(step):
            step(handler, request)
        elif step == 200:
            self.take(handler, request)
        else:
            answer(handler, step, b'{"code":"x","message":"no\x1b[31m"}', "application/json")

    def take(self, handler, request):
        self.taken.append(request)
        answer(handler, 200, BODIES[request.kind], TYPES[request.kind])


def answer(handler, status, body, kind, **headers):
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), str(value))
    handler.send_header("Content-Type", kind)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def close_without_answer(handler, _):
    handler.close_connection = True
    handler.connection.shutdown(socket.SHUT_RDWR)


def answer_html(handler, _):
    answer(handler, 200, b"<html>Please log in</html>", "text/html")


def answer_noise(handler, _):
    handler.wfile.write(b"\x00\xffnot HTTP at all\r\n\r\n")
    close_without_answer(handler, None)


def answer_without_end(handler, _, kind="application/proto"):
    handler.send_response(200)
    handler.send_header("Content-Type", kind)
    handler.end_headers()
    try:
        for _ in range(1 << 12):
            handler.wfile.write(b"x" * 4096)
    except OSError:
        pass
    handler.close_connection = True
