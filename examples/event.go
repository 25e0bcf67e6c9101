// SPDX-License-Identifier: BSD-2-Clause

// Package event is event.h in Go.
package event

const (
	FileNameLen = 256
	TaskCommLen = 16
)

// Kind is what was done.
type Kind uint32

// Event is struct event.
type Event struct {
	Pid      uint32
	Filename [FileNameLen]byte
	Comm     [TaskCommLen]byte
}

// Position is struct position.
type Position struct {
	Offset uint64
	Whence uint8
	_      [7]byte
}

// PaddedEvent is struct padded_event.
type PaddedEvent struct {
	C int8
	L int64
	I int32
	X uintptr
}

// Access is struct access. On 386 Go aligns uint64 to 4, hence the explicit padding.
type Access struct {
	Event  Event
	Kind   Kind
	At     Position
	Failed uint8
	_      [3]byte
	Error  int32
	WhenNs uint64
}
