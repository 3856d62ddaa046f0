"""What a command gets to know of the environment: an allow-list of names, and nothing that looks like a secret."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

_HARMLESS_NAMES = """
    PATH HOME LANG LANGUAGE TERM USER LOGNAME SHELL TMPDIR TZ PWD HOSTNAME EDITOR COLUMNS LINES
    VIRTUAL_ENV CONDA_PREFIX CONDA_DEFAULT_ENV PYENV_ROOT PYENV_VERSION PYTHONPATH PYTHONHOME PYTHONUTF8
    PIP_INDEX_URL PIP_CACHE_DIR UV_CACHE_DIR UV_INDEX_URL POETRY_HOME PIPX_HOME
    JAVA_HOME JDK_HOME MAVEN_HOME M2_HOME GRADLE_HOME GRADLE_USER_HOME ANDROID_HOME ANDROID_SDK_ROOT
    GOPATH GOROOT GOBIN GOCACHE GOMODCACHE GOFLAGS GOPROXY CARGO_HOME RUSTUP_HOME RUSTUP_TOOLCHAIN RUSTFLAGS
    NODE_PATH NODE_ENV NVM_DIR NVM_BIN NPM_CONFIG_PREFIX PNPM_HOME YARN_CACHE_FOLDER BUN_INSTALL DENO_DIR VOLTA_HOME
    GEM_HOME GEM_PATH RBENV_ROOT BUNDLE_PATH DOTNET_ROOT PERL5LIB R_HOME JULIA_DEPOT_PATH
    CC CXX CFLAGS CXXFLAGS CPPFLAGS LDFLAGS LD_LIBRARY_PATH DYLD_LIBRARY_PATH PKG_CONFIG_PATH
    MAKEFLAGS CMAKE_PREFIX_PATH
    HOMEBREW_PREFIX NIX_PATH NIX_PROFILES SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE CURL_CA_BUNDLE
    NODE_EXTRA_CA_CERTS HTTP_PROXY HTTPS_PROXY NO_PROXY ALL_PROXY http_proxy https_proxy no_proxy all_proxy
    DISPLAY WAYLAND_DISPLAY CI
"""
_ALLOWED = frozenset(_HARMLESS_NAMES.split())
_ALLOWED_PREFIXES = ("LC_", "XDG_")
_SECRET_NAME = re.compile(
    r"KEY|TOKEN|SECRET|PASSW|PASSPHRASE|PWD_|CREDENTIAL|AUTH|COOKIE|PRIVATE|SIGNATURE|SESSION_ID", re.IGNORECASE
)
_SECRET_VALUE = re.compile(
    r"\bsk-[A-Za-z0-9_-]{16,}|\bgh[pousr]_[A-Za-z0-9]{16,}|\bgithub_pat_[A-Za-z0-9_]{16,}|\bglpat-[A-Za-z0-9_-]{16,}"
    r"|\bxox[a-z]-[A-Za-z0-9-]{8,}|\b(?:AKIA|ASIA)[A-Z0-9]{12,}|\bAIza[A-Za-z0-9_-]{30,}|\bnpm_[A-Za-z0-9]{30,}"
    r"|\bhf_[A-Za-z0-9]{16,}|-----BEGIN|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\."
    r"|[a-z][a-z0-9+.-]{0,20}://[^/\s:@]{0,256}:[^/\s@]{1,256}@"
)
FIXED: Mapping[str, str] = {
    "TERM": "dumb",
    "NO_COLOR": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "PYTHONUNBUFFERED": "1",
}
"""What every command is told: there is no terminal, nobody answers a prompt."""


def scrubbed(environment: Mapping[str, str], extra: Collection[str] = ()) -> dict[str, str]:
    """The part of `environment` that a command may see. Names in `extra` pass whatever they look like."""
    kept = {name: value for name, value in environment.items() if name in extra or _harmless(name, value)}
    return {**kept, **{name: value for name, value in FIXED.items() if name not in extra or name not in kept}}


def _harmless(name: str, value: str) -> bool:
    if name not in _ALLOWED and not name.startswith(_ALLOWED_PREFIXES):
        return False
    return not _SECRET_NAME.search(name) and not looks_secret(value)


_CHANGES_WHAT_RUNS = re.compile(
    r"LD_.*|DYLD_.*|BASH_.*|BASHOPTS|SHELLOPTS|ENV|IFS|PS[0-4]|PROMPT_COMMAND|CDPATH|GLOBIGNORE|ZDOTDIR|HOME|SHELL"
    r"|GIT_(?!(?:AUTHOR|COMMITTER)_).*|.*PAGER|(?:.*_)?EDITOR|VISUAL|BROWSER|.*ASKPASS|.*_RSH|LESS.*|SSH_.*|SUDO_.*"
    r"|PYTHON(?:STARTUP|HOME|INSPECT|BREAKPOINT|WARNINGS|EXECUTABLE)|PERL5(?:OPT|DB)|RUBYOPT|NODE_OPTIONS"
    r"|.*JAVA_(?:TOOL_)?OPTIONS|RUSTC_.*WRAPPER|GCONV_PATH|LOCPATH|HOSTALIASES|MALLOC_.*|GNUPGHOME|COUNTERFOIL_.*"
    r"|.*PROXY|.*_proxy|SSL_CERT_.*|.*CA_BUNDLE|NODE_EXTRA_CA_CERTS|NODE_TLS_.*"
)
_OF_THE_SHELL = frozenset({"PWD", "OLDPWD", "SHLVL", "_", "UID", "EUID", "PPID"})
_IDENTITY = re.compile(r"GIT_(?:AUTHOR|COMMITTER)_(?:NAME|EMAIL|DATE)")


def refusal(name: str, value: str) -> str | None:
    """Why a hook may not set this variable for the commands of a session; None where it may.

    `PATH`, `PYTHONPATH` and the like may be set: setting up a session is what such hooks are for. What makes programs
    load or start something else, sends traffic elsewhere, or is a secret may not.
    """
    if name in FIXED or name in _OF_THE_SHELL:
        return "is set by the harness"
    if _CHANGES_WHAT_RUNS.fullmatch(name):
        return "changes what other programs run or whom they talk to"
    if (_SECRET_NAME.search(name) and not _IDENTITY.fullmatch(name)) or looks_secret(value):
        return "looks like a secret"
    return "has a value that no program can be given" if "\0" in value else None


def looks_secret(value: str) -> bool:
    """Does `value` hold something of the shape of a key, a token, a private key or a URL with a password?"""
    return _SECRET_VALUE.search(value) is not None


__all__ = ["FIXED", "looks_secret", "refusal", "scrubbed"]
