// SPDX-License-Identifier: BSD-2-Clause
//! event.h in Rust.

pub const FILE_NAME_LEN: usize = 256;
pub const TASK_COMM_LEN: usize = 16;

#[repr(u32)]
#[derive(Clone, Copy)]
pub enum Kind {
    Open,
    Read = 2,
    Close,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Event {
    pub pid: u32,
    pub filename: [u8; FILE_NAME_LEN],
    pub comm: [u8; TASK_COMM_LEN],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Position {
    pub offset: u64,
    pub whence: u8,
}

#[repr(C)]
pub struct PaddedEvent {
    pub c: i8,
    pub l: i64,
    pub i: i32,
    pub x: *const core::ffi::c_void,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Access {
    pub event: Event,
    pub kind: Kind,
    pub at: Position,
    pub failed: u8,
    pub error: i32,
    pub when_ns: u64,
}
