// SPDX-License-Identifier: BSD-2-Clause
// A service that answers in two formats by one generic function: each format is an instance of it.
use std::hint::black_box;

trait Format {
    fn field(out: &mut String, name: &str, value: u64);
}

struct Json;
struct Csv;

impl Format for Json {
    fn field(out: &mut String, name: &str, value: u64) {
        *out += &format!("{{\"{name}\": {value}}}");
    }
}

impl Format for Csv {
    fn field(out: &mut String, _name: &str, value: u64) {
        *out += &value.to_string();
        out.push(';');
    }
}

#[inline(never)]
fn answer<F: Format>(fields: u64) -> String {
    let mut out = String::new();
    for value in 0..fields {
        F::field(&mut out, "value", value);
    }
    out
}

fn main() {
    let mut bytes = 0;
    for request in 0..400u64 {
        bytes += answer::<Json>(black_box(request % 50)).len();
        if request % 4 == 0 {
            bytes += answer::<Csv>(black_box(400)).len();
        }
    }
    println!("{bytes} bytes");
}
