"""The tables of what makes an ordinary command dangerous: options, variables, programs. All in this one file."""

from __future__ import annotations

import re

from counterfoil.events.base import Value
from counterfoil.policy.names import names
from counterfoil.policy.shell_values import Assignment, Simple, Word
from counterfoil.policy.shell_wrappers import base_name, is_device


class Dangerous(Value, frozen=True, kw_only=True):
    """Options by which a program runs something else or writes somewhere. Letters count inside clusters too."""

    letters: str = ""
    words: tuple[str, ...] = ()
    why: str = "can run another program or write a file"


_D = Dangerous
_OPTIONS: dict[str, Dangerous] = {
    "tar": _D(letters="IFCP", words=("--to-command", "--checkpoint-action", "--use-compress-program", "--rsh-command",
              "--directory", "--absolute-names",
              "--info-script", "--new-volume-script", "--rmt-command")),
    "rsync": _D(letters="e", words=("--rsh", "--rsync-path", "--log-file", "--write-batch")),
    "sort": _D(letters="oT", words=("--output", "--compress-program", "--temporary-directory")),
    "split": _D(words=("--filter",)),
    **dict.fromkeys(("mapfile", "readarray"), _D(letters="C")),
    "find": _D(words=("-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf", "-fls")),
    "fd": _D(letters="xX", words=("--exec", "--exec-batch")),
    "rg": _D(words=("--pre", "--hostname-bin")),
    "man": _D(letters="PHCK", words=("--pager", "--html", "--config-file", "--preprocessor")),
    "curl": _D(letters="oOKDcFTJ", words=("--output", "--remote-name", "--remote-name-all", "--config", "--dump-header",
               "--cookie-jar", "--upload-file", "--form", "--output-dir", "--trace", "--trace-ascii", "--libcurl",
               "--stderr", "--unix-socket", "--proxy")),
    "wget": _D(letters="OoPieaxr", words=("--output-document", "--output-file", "--execute", "--config", "--input-file",
               "--use-askpass", "--post-file", "--directory-prefix", "--append-output")),
    "ssh": _D(letters="oFJ", words=()),
    "scp": _D(letters="oSFJD", words=()),
    "sftp": _D(letters="oSFJbD", words=()),
    "go": _D(words=("-exec", "-toolexec", "-vettool", "-overlay", "-modfile")),
    "cargo": _D(words=("--config",)),
    "yarn": _D(words=("--script-shell", "--use-yarnrc", "--cwd")),
    "make": _D(letters="fCI", words=("--eval", "--file", "--makefile", "--directory", "--include-dir")),
    "gcc": _D(letters="B", words=("-wrapper", "-fplugin")),
    "clang": _D(letters="B", words=("-fplugin", "-Xclang", "-fpass-plugin")),
    "hg": _D(words=("--config", "--config-file")),
    "svn": _D(words=("--config-option", "--config-dir", "--diff-cmd", "--diff3-cmd", "--editor-cmd")),
    "zip": _D(letters="T", words=("--unzip-command", "--test")),
    "bat": _D(words=("--pager",)),
    "date": _D(letters="s", words=("--set",)),
    "tree": _D(letters="o", words=("--output",)),
    "journalctl": _D(words=("--rotate", "--vacuum-size", "--vacuum-time", "--cursor-file")),
    "gh": _D(words=("--editor", "--web", "alias", "extension", "config")),
    "ip": _D(letters="b", words=("netns", "exec")),
    "cmake": _D(letters="EPC", words=("--build", "--install")),
    "ctags": _D(words=("--options", "--options-maybe")),
    "capsh": _D(words=("--", "==", "--shell")),
    "dpkg": _D(words=("--pre-invoke", "--post-invoke", "--status-logger", "--path-include")),
    **dict.fromkeys(("apt", "apt-get", "aptitude"), _D(letters="oc", words=("--option", "--config-file"))),
    "install": _D(words=("--strip-program",)),
    "ansible": _D(letters="amM", words=("--args", "--module-name", "--module-path")),
    **dict.fromkeys(("npx", "npm", "pnpm"), _D(letters="", words=("--call", "--script-shell", "--node-options",
                    "--userconfig", "--globalconfig", "--prefix", "--config", "--dir"))),
    **dict.fromkeys(("nix", "nix-shell"), _D(letters="c", words=("--run", "--command", "--expr", "shell", "develop"))),
}  # fmt: skip
_INLINE: dict[str, str] = {
    "python": "ci", "pypy": "ci", "perl": "eEnpiMm", "ruby": "enpri", "node": "eprii", "nodejs": "eprii", "php": "rBRE",
    "lua": "ei", "Rscript": "e", "osascript": "e", "deno": "", "bun": "e", "julia": "eE", "tclsh": "", "ghci": "e",
}  # fmt: skip
"""Interpreters and the letters by which they take their program from the command line."""
_INLINE_WORDS = ("--eval", "--print", "--require", "--import", "--loader", "--experimental-loader", "eval", "--run")
_ALWAYS: dict[str, str] = {
    **dict.fromkeys(
        ("less", "more", "most", "vi", "vim", "nvim", "view", "nano", "emacs", "ed", "ex"), "runs commands from within"
    ),
    **dict.fromkeys(
        names(
            "setarch linux32 linux64 i386 x86_64 prlimit setpriv choom perf ssh-agent run-parts systemd-cat "
            "systemd-inhibit xvfb-run uclampset runcon ld.so socat m4 dc logrotate pdsh"
        ),
        "runs another program",
    ),
    **dict.fromkeys(("sqlite3", "psql", "mysql", "ftp", "telnet", "irb", "pry"), "runs commands from within"),
}
_GIT_GLOBAL = frozenset({"--no-pager", "-P", "--version", "--help", "-h", "--literal-pathspecs", "--no-optional-locks"})
_GIT_KNOWN = names(
    "add am annotate apply archive bisect blame branch cat-file check-ignore checkout cherry cherry-pick clean "
    "clone commit count-objects describe diff diff-files diff-index diff-tree fetch for-each-ref format-patch "
    "fsck gc grep hash-object help init log ls-files ls-remote ls-tree merge merge-base mv name-rev notes pull "
    "push range-diff rebase reflog remote reset restore rev-list rev-parse revert rm shortlog show show-branch "
    "show-ref stash status submodule switch symbolic-ref tag update-index version whatchanged worktree config"
)
_GIT_ASKED = {
    "config": ("--get", "--get-all", "--list", "-l", "--get-regexp"),
    "submodule": ("status", "summary"),
    "bisect": ("log", "view", "start", "good", "bad", "reset"),
}
_GIT_OPTIONS = ("--output", "--upload-pack", "--receive-pack", "--exec", "--open-files-in-pager", "--ext-diff",
                "--textconv", "--extcmd", "--config", "--template", "--output-directory", "--interactive", "--strategy",
                "--config-env", "--git-dir", "--work-tree", "--no-index", "--gpg-sign", "--remote", "--filters",
                "--edit-description", "--attr-source", "--unsafe-paths", "--directory")  # fmt: skip
_GIT_LETTERS = {
    "rebase": "xisS", "grep": "O", "clone": "cu", "fetch": "u", "pull": "s", "merge": "s", "archive": "o",
    "format-patch": "o", "ls-remote": "u", "init": "", "difftool": "x", "cherry-pick": "S", "revert": "S",
}  # fmt: skip
_VARIABLES = re.compile(
    r"RANDOM|SRANDOM|SECONDS|OPTIND|LINENO|HISTCMD|EPOCH.*|BASHPID|[EU]?UID|PPID|DIRSTACK|GROUPS|FUNCNAME|COMP_.*"
    r"|PATH|IFS|ENV|CDPATH|HOME|SHELL|SHELLOPTS|BASHOPTS|PAGER|EDITOR|VISUAL|BROWSER|PROMPT_COMMAND|PS[0-4]|FPATH"
    r"|BASH_.*|LD_.*|DYLD_.*|GIT_(?!AUTHOR_|COMMITTER_|TERMINAL_PROMPT$).*|.*PAGER|.*_EDITOR|.*ASKPASS|.*_RSH|RSH"
    r"|PYTHON.*|NODE_.*|NPM_CONFIG_.*|npm_config_.*|PERL.*|RUBY.*|JAVA_TOOL_OPTIONS|_?JAVA_OPTIONS|JDK_.*|.*_OPTS"
    r"|LUA_.*|PHP.*|LESS.*|MANOPT|MAKEFLAGS|MFLAGS|GNUMAKEFLAGS|MAKEFILES|CC|CXX|LD|AR|RUSTC.*|RUSTDOC.*|CARGO_.*"
    r"|GO[A-Z]+|GCC_.*|COMPILER_PATH|PIP_.*|UV_.*|DOCKER_.*|KUBECONFIG|SSH_.*|SUDO_.*|TAR_OPTIONS|GREP_OPTIONS|CURL_HOME"
    r"|WGETRC|RIPGREP_CONFIG_PATH|XDG_CONFIG_.*|XDG_DATA_.*|OPENSSL_.*|GCONV_PATH|LOCPATH|TERMINFO.*|INPUTRC|HIST.*"
    r"|.*_(?:HOME|CONFIG|CONFIG_FILE|CONFIG_DIR|PATH|FILE|ARGS|FLAGS|CMD|COMMAND|OPTIONS|PLUGINS?|PROGRAM|TOOL|SHELL"
    r"|HOOKS?|WRAPPER|LAUNCHER|PRELOAD|LOADER|RC|CC|CXX)|[A-Z]*FLAGS|ANSIBLE_.*|CMAKE_.*|GRADLE_.*|MAVEN_.*|TF_CLI_.*"
    r"|BUNDLE_.*|GEM_.*|VIM.*|EXINIT|ZDOTDIR|RSYNC_.*|MAIL.*|.*PROXY|.*_proxy|VIRTUAL_ENV|TMUX.*|GNUPGHOME|_"
)
_SETS_VARIABLES = names("export declare typeset local readonly read printf mapfile readarray getopts unset wait")
_EVALUATES = _SETS_VARIABLES | {"test", "[", "let", "compgen", "complete"}
_SED_SAFE = re.compile(
    r"(?:[0-9$]+(?:,[0-9$]+)?|/[^/\\]*/)?(?:[pdq=]|s([/|#,])(?:(?!\1)[^\\\n]|\\[^\n])*\1(?:(?!\1)[^\\\n]|\\[^\n])*\1[gpiI0-9]*)"
)
_SED_OPTIONS = re.compile(r"-[nErszu]+|--(?:quiet|silent|regexp-extended|null-data)|-e|--expression")


_MAKE_SETS = re.compile(r"[A-Za-z_.][\w.]*\s*(?:::|:|\+|\?|!)?=")
_HARMLESS_WORDS = names("-u -B -s -S -O -OO -q -w -b -bb --no-warnings --enable-source-maps")
"""Options of interpreters that take no value: a file's name behind them ends the interpreter's own words."""
_RUN_MODULES = names("timeit pdb trace profile cProfile runpy code idlelib webbrowser pty cmd")
"""Modules of the standard library that run what they are given."""


def variable_danger(assignment: Assignment) -> str | None:
    """Why setting this variable may change what runs."""
    if _VARIABLES.fullmatch(assignment.name):
        return f"{assignment.name} changes what runs"
    return None


def danger(command: Simple) -> str | None:
    """Why this command, whatever rule allows it, is asked; None for one without known dangers."""
    name = base_name(command.program)
    rest = command.words[1:]
    found = _builtin(name, rest) or _inline(name, rest)
    if found or name in _ALWAYS:
        return found or f"{name} {_ALWAYS[name]}"
    if re.match(r"ld(?:-linux|-musl|-\d|64\.so|\.so)", name):
        return f"{name} runs another program"
    if name in ("make", "gmake", "ninja") and (set_ := next((w for w in rest if _MAKE_SETS.match(w.text)), None)):
        return f"make {set_.raw} can change what runs"
    if name == "git":
        return _unclear(name, rest) or _git(rest)
    if name in ("sed", "gsed"):
        return _unclear(name, rest) or _sed(rest)
    if name in ("awk", "gawk", "mawk", "nawk"):
        return _unclear(name, rest) or _awk(rest)
    options = _OPTIONS.get(name)
    if options is None:
        return None
    if name == "tar" and rest and set(options.letters) & set(rest[0].text):
        return f"tar {rest[0].text} {options.why}"
    return _unclear(name, rest) or _option(name, options, rest)


def _option(name: str, options: Dangerous, words: tuple[Word, ...]) -> str | None:
    for word in words:
        text = word.text
        if long := _is_long(text, options.words):
            return f"{name} {long} {options.why}"
        if re.match(r"-[^-]", text) and set(options.letters) & set(text[1:]):
            return f"{name} {text} {options.why}"
    return None


def _is_long(text: str, dangerous: tuple[str, ...]) -> str | None:
    """The dangerous option that `text` is, also when shortened, as many programs take it."""
    head = text.partition("=")[0]
    for option in dangerous:
        if head == option or (text.startswith("--") and len(head) > 3 and option.startswith(head)):
            return option
    return None


def _unclear(name: str, words: tuple[Word, ...]) -> str | None:
    """A word that may turn into one of the dangerous options."""
    for word in words:
        if word.text == "--" and name != "git":
            return None
        if not word.static and word.text[0] in ("\ue000", "-"):
            return f"{word.raw} may become an option of {name}"
        if word.glob and word.text[0] in "*?[":
            return f"{word.raw} may become an option of {name}: write ./{word.raw}"
    return None


def _builtin(name: str, words: tuple[Word, ...]) -> str | None:
    """Builtins that set variables or evaluate the names that they are given."""
    if name in _EVALUATES and any("$(" in word.text or "`" in word.text for word in words):
        return f"{name} may run what stands in an index"
    if name == "compgen" and any(word.text.startswith(("-C", "-W", "-F")) or not word.static for word in words):
        return "compgen runs what its options say"
    if name in _EVALUATES and name not in ("test", "[") and any("[" in word.text or not word.text for word in words):
        return f"{name} may run what stands in an index"
    operands = [word for word in words if word.text not in ("[", "]")]
    arithmetic = name in ("test", "[") and any(word.text in _ARITHMETIC for word in words)
    if arithmetic and any("[" in word.text or not word.static for word in operands):
        return f"{name} may run what stands in an index"
    if name in ("declare", "typeset", "local", "readonly", "export") and any(
        re.match(r"[-+][A-Za-z]*[in]", word.text) for word in words
    ):
        return f"{name} makes a variable whose value is evaluated, or stands for another"
    if name in _SETS_VARIABLES:
        if name == "printf" and not any(w.text.startswith("-v") for w in words):
            return None
        for word in words:
            if not word.static and not re.match(r"[A-Za-z_]\w*=", word.text):
                return f"{name} sets a variable whose name isn't known"
            variable = re.match(r"(?:-v)?([A-Za-z_]\w*)", word.text)
            if variable and _VARIABLES.fullmatch(variable[1]) and not word.text.startswith("--"):
                return f"{variable[1]} changes what runs"
    if name in ("set", "shopt"):
        safe = re.compile(r"[-+][eux]+|[-+][eux]*o|pipefail|errexit|nounset|xtrace")
        if not all(safe.fullmatch(word.text) for word in words):
            return f"{name} changes how the line is read"
    return None


_ARITHMETIC = frozenset({"-v", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-R"})


def _inline(name: str, words: tuple[Word, ...]) -> str | None:
    letters = _INLINE.get(re.sub(r"[0-9.]+$", "", name) or name)
    if letters is None:
        return None
    if not words:
        return f"{name} runs what it reads"
    for at, word in enumerate(words):
        text = word.text
        if not word.static and text[0] == "\ue000":
            return f"{name} runs what isn't known before it runs"
        if text == "-" or is_device(text):
            return f"{name} runs what it reads"
        if text in _INLINE_WORDS or text.partition("=")[0] in _INLINE_WORDS:
            return f"{name} {text} runs a program from the command line"
        if re.match(r"-[^-]", text) and not text.startswith("-m") and set(letters) & set(text[1:]):
            return f"{name} {text} runs a program from the command line"
        if text == "-m" and name.startswith(("python", "pypy")):
            module = words[at + 1].text if at + 1 < len(words) else ""
            return f"python -m {module} runs what it is given" if module in _RUN_MODULES else None
        if not text.startswith("-") and (at == 0 or not _may_take(words[at - 1].text)):
            return None
    return None if words[-1].text in ("--version", "-V", "-v", "--help", "-h") else f"{name} runs what it reads"


def _may_take(option: str) -> bool:
    """May this word be an option whose value is the next word?"""
    return option.startswith("-") and option not in _HARMLESS_WORDS and "=" not in option


def _git(words: tuple[Word, ...]) -> str | None:
    at = 0
    while at < len(words) and words[at].text.startswith("-"):
        if words[at].text not in _GIT_GLOBAL:
            return f"git {words[at].text} can change what git runs"
        at += 1
    if at >= len(words):
        return None
    sub, rest = words[at].text, words[at + 1 :]
    if sub not in _GIT_KNOWN:
        return f"git {sub} may be an alias or a program"
    if sub in _GIT_ASKED and not any(word.text in _GIT_ASKED[sub] for word in rest[:1]):
        return f"git {sub} can change what git runs"
    for word in rest:
        if long := _is_long(word.text, _GIT_OPTIONS):
            return f"git {sub} {long} can run another program or write a file"
        if re.match(r"-[^-]", word.text) and set(_GIT_LETTERS.get(sub, "")) & set(word.text[1:]):
            return f"git {sub} {word.text} can run another program or write a file"
        if re.match(r"[A-Za-z0-9]+::", word.text):
            return f"{word.text} lets git run a program"
    return None


def _sed(words: tuple[Word, ...]) -> str | None:
    scripts = 0
    for at, word in enumerate(words):
        if word.text.startswith("-") and not _SED_OPTIONS.fullmatch(word.text):
            return f"sed {word.text} can write files or run commands"
        explicit = at > 0 and words[at - 1].text in ("-e", "--expression")
        if explicit or (not word.text.startswith("-") and scripts == 0):
            scripts += 1
            if not word.static or not _SED_SAFE.fullmatch(word.text):
                return "a sed script can write files or run commands"
    return None


def _awk(words: tuple[Word, ...]) -> str | None:
    for word in words:
        if re.match(r"-[^F]", word.text):
            return f"awk {word.text} can load a program"
        if not word.static or re.search(r"system|getline|close|[|>`@]", word.text):
            return "an awk program can write files or run commands"
    return None


__all__ = ["danger", "variable_danger"]
