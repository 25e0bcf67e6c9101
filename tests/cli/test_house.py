#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What holds for every verb: help = manual = completion, exit statuses, streams."""

import json
import os
import re
import subprocess

from claims import (BUILD, CAIRN, SOURCE, cairn, claim, claim_each, compile_c, expect, folder,
                    main, need, run)

VERBS = [
    "sites", "trace", "layout", "addr", "sidecar", "stack", "code", "code run", "run", "unwind dump",
    "unwind encode", "profile", "profile show", "profile diff", "profile push", "btf dump",
    "btf check", "btf convert", "btf encode", "btf dedup", "btf merge", "btf distil", "doctor"
]


def options_of_help(verb):
    text = cairn(*verb.split(), "--help", check=True).out
    lines = text.split("Options:\n")[1].splitlines()
    found = set()
    for line in lines:
        match = re.match(r"\s+(?:(-\w), )?(--[a-z-]+)", line)
        if match and line.index("--") < 8:
            found.update(word for word in match.groups() if word)
    return found


def page(verb):
    return f"cairn-{verb.replace(' ', '-')}.1"


def options_of_man(verb):
    with open(os.path.join(BUILD, "man", page(verb)), encoding="utf-8") as file:
        text = file.read()
    section = text.split(".SH OPTIONS\n")[1].split(".SH ")[0]
    found = set()
    lines = section.splitlines()
    for before, line in zip(lines, lines[1:]):
        if before == ".TP":
            plain = re.sub(r"\\f.", "", line).replace("\\-", "-")
            found.update(re.findall(r"(?:^|, )(--?[a-zA-Z][a-z-]*)", plain))
    return found


def options_of_bash(verb):
    text = cairn("--completion", "bash", check=True).out
    words = re.search(rf"^\t'{verb}'\) options='([^']*)'", text, re.M).group(1)
    return set(words.split())


@claim_each(*VERBS)
def help_manual_and_completion_have_the_same_options(verb):
    from_help = options_of_help(verb)
    expect({"-h", "--help"} <= from_help, from_help)
    expect(from_help == options_of_man(verb), from_help ^ options_of_man(verb))
    expect(from_help == options_of_bash(verb), from_help ^ options_of_bash(verb))


@claim_each(*VERBS)
def fish_and_zsh_know_every_option(verb):
    fish = cairn("--completion", "fish", check=True).out
    zsh = cairn("--completion", "zsh", check=True).out
    part = zsh.split(f"\n'{verb}')\n")[1].split(";;")[0]
    seen = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in verb.split())
    for option in options_of_help(verb) - {"-h", "--help"}:
        if option.startswith("--"):
            expect(f"'{seen}' -l {option[2:]}" in fish, option, fish)
        expect(re.search(r"[\s*(,{]" + option + r"[\s'),}]", part), option, part)


@claim
def bash_completes_verbs_options_and_values():
    script = cairn("--completion", "bash", check=True).out
    asks = [("cairn sit", "sites"), ("cairn unwind enc", "encode"), ("cairn sites --js", "--json"),
            ("cairn sites --emit b", "bpftrace"), ("cairn trace --bes", "--best-effort"),
            ("cairn bt", "btf"), ("cairn btf du", "dump"), ("cairn btf dump --pre", "--pretty"),
            ("cairn code ru", "run"), ("cairn code --wa", "--watch"),
            ("cairn code 1 --wa", "--watch"), ("cairn code run --rfc", "--rfc-numbers"),
            ("cairn btf convert --endian l", "little")]
    for line, wanted in asks:
        words = line.split(" ")
        ask = (f"{script}\nCOMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; _cairn; "
               "printf '%s\\n' \"${COMPREPLY[@]}\"")
        r = run("bash", "-c", ask, check=True)
        expect(r.lines() == [wanted], line, r)


def bash_offers(line, where):
    script = cairn("--completion", "bash", check=True).out
    words = line.split(" ")
    ask = (
        f"PATH={os.path.dirname(CAIRN)}:$PATH; cd {where}; {script}\nCOMP_WORDS=({' '.join(words)}); "
        f"COMP_CWORD={len(words) - 1}; _cairn; printf '%s\\n' \"${{COMPREPLY[@]}}\"")
    return set(run("bash", "-c", ask, check=True).lines())


@claim
def bash_completes_functions_types_processes_and_abis():
    path = compile_c("named", "struct pair { int a; }; struct pair one;\n"
              "__attribute__((noinline)) int paint(int n) { return n; }\n"
              "__attribute__((noinline)) int paired(int n) { return n + 1; }\n"
              "int main(int argc, char **argv) { return paint(argc) + paired(argc); }\n")
    expect(bash_offers(f"cairn sites {path} pai", folder()) == {"paint", "paired"}, folder())
    expect(bash_offers(f"cairn layout {path} pai", folder()) == {"pair"}, folder())
    expect(os.path.basename(path) in bash_offers("cairn layout nam", folder()), folder())
    expect("x86-64" in bash_offers("cairn layout --abi x86", folder()), folder())
    with subprocess.Popen(["sleep", "60"]) as process:
        try:
            expect(
                str(process.pid) in bash_offers(f"cairn stack {process.pid}", folder()),
                process.pid)
            expect(
                str(process.pid) in bash_offers(f"cairn trace -p {process.pid}", folder()),
                process.pid)
        finally:
            process.kill()


@claim
def a_name_that_a_shell_would_run_is_not_offered():
    path = compile_c(
        "hostile", "__attribute__((noinline)) int paXtouch_pwned(int n) { return n; }\n"
        "__attribute__((noinline)) int pay(int n) { return n; }\n"
        "int main(int argc, char **argv) { return paXtouch_pwned(argc) + pay(argc); }\n")
    with open(path, "rb") as file:
        data = file.read()
    with open(path, "wb") as file:
        file.write(data.replace(b"paXtouch_pwned", b"pa$(>./pwned);"))
    expect("pa$(" in cairn("sites", "--no-sidecar", path).out, path)
    expect(bash_offers(f"cairn sites {path} pa", folder()) == {"pay"}, path)
    expect(not os.path.exists(os.path.join(folder(), "pwned")), path)


@claim
def failures_are_lines_of_json_too():
    for words, status in [(("sites", "--json", CAIRN, "no_such_function"), None),
                          (("sites", "--json", "/no/such"), 2),
                          (("layout", "--json", "/no/such", "x"), 2),
                          (("sites", "--json", "--nonsense"), 2)]:
        r = cairn(*words)
        last = json.loads(r.lines()[-1])
        expect(set(last) == {"error", "status"} and last["status"] == r.status != 0, words, r)
        expect(status is None or r.status == status, words, r)
        expect(last["error"].split("\n")[0] in r.err, words, r)
    expect(not cairn("sites", "/no/such").out, "text has no JSON")


@claim
def long_output_goes_through_the_pager_on_a_terminal_only():
    need("script")
    path = compile_c("paged", "int main(void) { return 0; }\n")
    ask = f"{CAIRN} sites {path} main"
    marked = "TERM=xterm CAIRN_PAGER='sed s/^/P:/' "
    on_terminal = run("script", "-qec", marked + ask, "/dev/null", check=True)
    expect("P:" in on_terminal.out and "main" in on_terminal.out, on_terminal)
    r = run("script", "-qec", f"env -u CAIRN_PAGER TERM=xterm PAGER='sed s/^/P:/' {ask}",
            "/dev/null", check=True)
    expect("P:" in r.out, r)
    piped = run("bash", "-c", f"{marked} {ask} | cat", check=True)
    expect("P:" not in piped.out and "main" in piped.out, piped)
    for other in ["env -u CAIRN_PAGER TERM=xterm PAGER=no-such-pager ", "TERM=xterm CAIRN_PAGER= ",
                  "env -u CAIRN_PAGER TERM=dumb PAGER='sed s/^/P:/' "]:
        r = run("script", "-qec", other + ask, "/dev/null", check=True)
        expect("P:" not in r.out and "main" in r.out, other, r)
    # The status is that of the verb.
    r = run("script", "-qec", f"{marked} {CAIRN} sites {path} no_such_function", "/dev/null")
    expect(r.status == 1, r)


@claim_each("bash", "zsh", "fish")
def a_shell_takes_its_script(shell):
    need(shell)
    path = os.path.join(folder(), "completion")
    with open(path, "w", encoding="utf-8") as file:
        file.write(cairn("--completion", shell, check=True).out)
    r = run(shell, "-n", path)
    expect(r.status == 0 and not r.err, r)


@claim
def every_test_is_one_that_the_runner_takes():
    # What cannot be executed is a module of the others to it, and is passed over without a word.
    for top, _, names in os.walk(os.path.join(SOURCE, "tests")):
        for name in names:
            path = os.path.join(top, name)
            expect(not re.fullmatch(r"test_.*\.py", name) or os.access(path, os.X_OK), path)


@claim
def help_names_every_verb_and_the_manual_exists():
    text = cairn("--help", check=True).out
    for verb in VERBS:
        expect(re.search(rf"^  {verb} ", text, re.M), verb, text)
        with open(os.path.join(BUILD, "man", page(verb)), encoding="utf-8") as file:
            text_of_page = file.read()
        expect(text_of_page.index(".SH EXAMPLES") < text_of_page.index(".SH OPTIONS"), text_of_page)
        with open(os.path.join(SOURCE, "man", "cairn.1"), encoding="utf-8") as file:
            expect("\\fB" + page(verb)[:-2].replace("-", "\\-") + "\\fR(1)" in file.read(), verb)


@claim_each("cairn.1", "cairn-loc.7", *(page(verb) for verb in VERBS))
def manual_formats_without_a_warning(name):
    need("groff")
    path = os.path.join(SOURCE, "man", name)
    if not os.path.exists(path):
        path = os.path.join(BUILD, "man", name)
    r = run("groff", "-man", "-Tutf8", "-ww", "-z", path)
    expect(r.status == 0 and not r.err, r)


@claim
def usage_errors_exit_with_2_and_answer_on_stderr_only():
    for words in [(), ("site",), ("sites",), ("sites", "--nonsense", "x"), ("sites", "-j"),
                  ("sites", "-j", "0", "x"), ("sites", "-jx", "x"), ("sites", "--json=1", "x"),
                  ("sites", "--emit", "awk", "x", "y"), ("sites", "/no/such/file", "f"), ("trace",),
                  ("trace", "-p", "1", "-c", "ls", "f"), ("trace", "-p", "x", "f"),
                  ("trace", "--duration", "0", "f"), ("trace", "-c", "", "f"),
                  ("trace", "-c", "no-such-program-anywhere", "f"), ("doctor", "x"),
                  ("--completion", "csh"), ("btf",), ("btf", "du"), ("btf", "dump"),
                  ("btf", "dump", "/no/such/file"),
                  ("btf", "encode", "--global-vars=some", "/no/such/file"),
                  ("btf", "encode", "--embed", CAIRN)]:
        r = cairn(*words)
        expect(r.status == 2 and not r.out and r.err, r)


@claim
def verbs_and_options_keep_their_old_spelling():
    for old, new in [("pack", "sidecar")]:
        r = cairn(old, "--help")
        expect(r.status == 0 and r.out == cairn(new, "--help").out, r)
    for words in [("sites", "--places"), ("sites", "--pack", "x.cairn"),
                  ("btf", "encode", "--pack=x.cairn")]:
        r = cairn(*words, "/dev/null/no-such-file")
        expect("no such option" not in r.err and r.status != 0, words, r)
    r = cairn("sites", "--place", "/dev/null/no-such-file")
    expect("no such option" in r.err, r)


@claim
def verbs_have_exact_names():
    r = cairn("sit", "--help")
    expect(r.status == 2 and "no such verb: sit" in r.err, r)


@claim
def a_mistyped_verb_or_option_gets_near_ones():
    for words, near in [(("site",), "sites"), (("stes", "x"), "sites"), (("satck",), "stack"),
                        (("lay",), "layout"), (("btf", "dmp"), "btf dump"),
                        (("sites", "--jsn", "x"), "--json"), (("trace", "--dry-rnu"), "--dry-run")]:
        r = cairn(*words)
        expect(r.status == 2 and f"\nDid you mean: {near}" in r.err and not r.out, words, r)
    for words in [("frobnicate",), ("btf", "frobnicate"), ("sites", "--frobnicate")]:
        r = cairn(*words)
        expect(r.status == 2 and "Did you mean" not in r.err and "Try: cairn" in r.err, r)


@claim
def help_is_a_verb_too():
    for words, same in [(("help",), ("--help",)), (("help", "sites"), ("sites", "--help")),
                        (("help", "btf"), ("btf", "--help")),
                        (("help", "btf", "dump"), ("btf", "dump", "--help"))]:
        r = cairn(*words)
        expect(r.status == 0 and not r.err and r.out == cairn(*same).out, words, r)
    expect(cairn("help", "frobnicate").status == 2, words)


@claim
def no_line_of_help_is_longer_than_a_document():
    for words in [(), ("sites",), ("trace",), ("layout",), ("stack",), ("btf", "encode")]:
        lines = cairn(*words, "--help", check=True).lines()
        examples = {i for i, line in enumerate(lines) if line.startswith(("  cairn ", "  sudo "))}
        for i, line in enumerate(lines):
            # A command can be copied as it stands.
            expect(len(line) <= 100 or i in examples, words, line)


@claim
def help_goes_to_stdout_and_succeeds():
    for words in [("--help",), ("-h",), ("sites", "--help"), ("sites", "x", "-h"), ("--version",),
                  ("btf", "-h"), ("btf", "check", "--help")]:
        r = cairn(*words)
        expect(r.status == 0 and r.out and not r.err, r)


@claim
def a_count_in_text_agrees_with_its_noun():
    """One function writes both (cairn_counted()): "1 event", "2 events"."""
    number = r'%[0-9.*]*(?:zu|u|d|lu|ld|llu|" PRI[ud](?:64|32)(?: "|\n\s*"))'
    nouns = "events|sites|records|functions|variables|rows|FDEs|disagreements|hits|arguments|bodies|values|copies|times|holes|members"
    # It is said of two functions or more.
    fine = {"cli/code/cmd_sites.c": "%zu functions; choose one"}
    wrong = []
    for place, _, names in os.walk(os.path.join(SOURCE, "cli")):
        for path in (os.path.join(place, name) for name in names if name.endswith(".c")):
            with open(path, encoding="utf-8") as file:
                text = file.read()
            relative = os.path.relpath(path, SOURCE)
            for found in re.finditer(number + rf"(?: [a-z-]+)? (?:{nouns})\b", text):
                if not text[found.start():].startswith(fine.get(relative, "\0")):
                    wrong.append(f"{relative}: {found.group(0)}")
    expect(not wrong, *wrong)
    r = cairn("btf", "encode", compile_c("one-of-each", "int main(void) { return 0; }"), "-o",
              os.path.join(folder(), "one.btf"))
    expect(r.status == 0 and re.search(r"\b[0-9]+ records?, 1 function, 0 variables\n", r.out), r)


@claim
def option_and_value_are_spelt_in_every_usual_way():
    for words in [("-j2",), ("-j", "2"), ("--jobs=2",), ("--jobs", "2")]:
        r = cairn("sites", *words, "/no/such/file")
        expect(r.status == 2 and "No such file" in r.err, r)


@claim
def what_is_no_elf_file_is_damaged_input():
    path = os.path.join(folder(), "text")
    with open(path, "w", encoding="utf-8") as file:
        file.write("not a program\n" * 100)
    for words in [("sites", path), ("sites", "--hazards", path)]:
        r = cairn(*words)
        expect(r.status == 4 and not r.out and path in r.err, r)


@claim
def a_full_disk_is_not_success():
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run([CAIRN, "--help"], stdout=full, stderr=subprocess.PIPE, check=False)
    expect(done.returncode == 3, done)


if __name__ == "__main__":
    main()
