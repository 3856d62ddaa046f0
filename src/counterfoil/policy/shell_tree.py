"""From a syntax tree to simple commands: total over the kinds of node; what isn't known is said to be so."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

from counterfoil.policy.names import names
from counterfoil.policy.shell_heredoc import heredoc_fault
from counterfoil.policy.shell_values import Assignment, Flag, FlagKind, Line, Redirect, Simple, Word
from counterfoil.policy.shell_words import Source, Words

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

MAX_NODES = 20_000
MAX_TEXT = 400
_CONTAINERS = names(
    "program list pipeline subshell compound_statement if_statement elif_clause else_clause while_statement "
    "do_group negated_command command_substitution process_substitution ERROR"
)
_TOKENS = frozenset(
    [
        ";",
        "&",
        "&&",
        "||",
        "|",
        "|&",
        "(",
        ")",
        "{",
        "}",
        "if",
        "then",
        "elif",
        "else",
        "fi",
        "while",
        "until",
        "do",
        "done",
        "!",
        "case",
        "in",
        "esac",
        "for",
        "select",
        "function",
        "$(",
        "`",
        "<(",
        ">(",
        ";;",
        ";&",
        ";;&",
        "\n",
    ]
)
_RESERVED = names("if then elif else fi while until do done case esac for select function in { } ! [[ ]] coproc ( )")
_BLANK = re.compile(rb"(?:[ \t\n]|\\\n)*")
_ARITHMETIC = re.compile(r"-(eq|ne|lt|le|gt|ge|v|R)\b|[$`'\"\\]")
_STATEMENTS = _CONTAINERS | names(
    "command redirected_statement declaration_command unset_command test_command variable_assignment "
    "variable_assignments for_statement c_style_for_statement case_statement function_definition"
)
_LISTS_OF_WORDS = frozenset({"command", "declaration_command", "unset_command"})
_ON_ONE_LINE = _LISTS_OF_WORDS | {"file_redirect", "herestring_redirect", "redirected_statement"}
_READ_AS_WORDS = names(
    "expansion simple_expansion command_substitution process_substitution arithmetic_expansion word regex "
    "extglob_pattern string"
)
_MAY_TOUCH = frozenset({"file_redirect", "herestring_redirect", "heredoc_redirect"})


@lru_cache(maxsize=1)
def _parser() -> Parser:
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


def reduce_line(command: str) -> Line:
    """The simple commands of `command`, at any depth, before wrappers are looked through."""
    source = Source(command)
    root = _parser().parse(source.plain).root_node
    if root.descendant_count > MAX_NODES:
        return Line(flags=(Flag(kind="opaque", why="too complex to check", text=command[:MAX_TEXT]),))
    reduction = _Reduction(source)
    if root.has_error:
        reduction.note("opaque", "not understood by the shell grammar", root)
    reduction.walk(root)
    return reduction.line()


class _Reduction:
    """One walk over a tree, without recursion: what is nested waits in `_todo`."""

    def __init__(self, source: Source) -> None:
        self._source = source.whole
        self._text = source.text
        self._todo: list[Node] = []
        self._commands: list[Simple] = []
        self._assignments: list[Assignment] = []
        self._redirects: list[Redirect] = []
        self._flags: list[Flag] = []
        self._nested: list[Node] = []
        self._words = Words(source, self.note, self._nested)
        self._handlers: dict[str, Callable[[Node], None]] = {
            "command": lambda node: self._command(node, ()),
            "redirected_statement": self._redirected,
            "declaration_command": self._builtin,
            "unset_command": self._builtin,
            "test_command": self._test,
            "variable_assignment": self._alone,
            "variable_assignments": self._alone,
            "for_statement": self._for,
            "c_style_for_statement": self._arithmetic,
            "case_statement": self._case,
            "case_item": self._case,
            "function_definition": self._function,
            "comment": self._comment,
            "file_redirect": self._redirect_alone,
            "heredoc_redirect": self._heredoc,
            "herestring_redirect": self._redirect_alone,
        }

    def line(self) -> Line:
        """What was found."""
        return Line(
            commands=tuple(self._commands),
            assignments=tuple(self._assignments),
            redirects=tuple(self._redirects),
            flags=tuple(self._flags),
        )

    def note(self, kind: FlagKind, why: str, node: Node) -> None:
        """Something can't be reduced."""
        self._flags.append(Flag(kind=kind, why=why, text=self._text(node)[:MAX_TEXT]))

    def walk(self, root: Node) -> None:
        """Go through everything, in the order of the text."""
        self._todo.append(root)
        while self._todo:
            node = self._todo.pop()
            self._visit(node)
            self._todo.extend(reversed(self._nested))
            self._nested.clear()

    def _visit(self, node: Node) -> None:
        self._gaps(node)
        if node.is_named and (handler := self._handlers.get(node.type)):
            handler(node)
        elif node.type in _CONTAINERS and node.is_named:
            self._container(node)
        elif not node.is_named and node.child_count == 0:
            if node.type not in _TOKENS:
                self.note("opaque", "unknown syntax", node)
        else:
            self.note("opaque", f"unknown syntax ({node.type})", node)
            self._nested.extend(node.children)

    def _gaps(self, node: Node) -> None:
        """Nothing may stand between two parts that the grammar has left out, and no two words may be glued."""
        end, before = node.start_byte, ""
        for child in node.children:
            gap = self._source[end : child.start_byte]
            if not gap and node.type in _LISTS_OF_WORDS and before and not {before, child.type} & _MAY_TOUCH:
                self.note("opaque", "two words without a space between", node)
            if gap and not _BLANK.fullmatch(gap):
                self.note("opaque", "text that the shell grammar leaves out", node)
            elif gap and gap.startswith(b"\\") and gap.endswith(b"\n") and end > node.start_byte:
                self.note("opaque", "a word that goes on in the next line", node)
            elif b"\n" in gap.replace(b"\\\n", b"") and node.type in _ON_ONE_LINE:
                self.note("opaque", "a line end inside of a command", node)
            end, before = child.end_byte, child.type

    def _container(self, node: Node) -> None:
        first = node.children[0] if node.children else None
        if first is not None and first.type == "((":
            self._arithmetic(node)
            return
        if node.type == "command_substitution" and first is not None:
            self._substitution(node, first)
        self._nested.extend(node.children)

    def _substitution(self, node: Node, first: Node) -> None:
        if first.type == "`" and "\\" in self._text(node):
            self.note("opaque", "backslashes inside backticks", node)
            inner = re.sub(r"\\([\\`$])", r"\1", self._text(node)[1:-1])
            nested = reduce_line(inner) if len(inner) < len(self._source) - 1 else Line()
            self._commands.extend(nested.commands)
            self._flags.extend(nested.flags)
        if first.type not in ("$(", "`", "<(", ">("):
            self.note("opaque", "unknown syntax", node)

    # ---- commands

    def _redirected(self, node: Node) -> None:
        body = node.child_by_field_name("body")
        extra: list[Word] = []
        for child in node.children:
            if child == body:
                continue
            if child.type == "file_redirect":
                extra += self._redirect(child)
            else:
                self._nested.append(child)
        if body is not None and body.type == "command":
            self._gaps(body)
            self._command(body, tuple(extra))
        else:
            if extra and body is not None:
                self.note("opaque", "words after a redirection", node)
            self._emit(node, extra)
            if body is not None:
                self._nested.append(body)

    def _command(self, node: Node, extra: tuple[Word, ...]) -> None:
        words: list[Word] = []
        assignments: list[Assignment] = []
        late: list[Word] = []
        for child in node.children:
            if child.type == "variable_assignment" and not words:
                assignments.append(self._assignment(child))
            elif child.type == "file_redirect":
                late += self._redirect(child)
            elif child.type in ("herestring_redirect", "heredoc_redirect", "subshell"):
                self._nested.append(child)
            else:
                if child.type in ("regex", "extglob_pattern"):
                    self.note("opaque", "a pattern at the place of a word", child)
                words.append(self._words.read(child))
        if late and not words:
            self.note("opaque", "a redirection before the command", node)
        self._emit(node, [*words, *late, *extra], tuple(assignments))

    def _emit(self, node: Node, words: list[Word], assignments: tuple[Assignment, ...] = ()) -> None:
        self._assignments.extend(assignments)
        if not words:
            return
        if words[0].text in _RESERVED:
            self.note("opaque", f"the reserved word {words[0].text} at the place of a command", node)
        if not words[0].static:
            self.note("opaque", "the program's name isn't known before it runs", node)
        elif words[0].glob:
            self.note("opaque", "the program's name is a wildcard", node)
        self._commands.append(Simple(words=tuple(words), assignments=assignments, raw=self._text(node)))

    def _builtin(self, node: Node) -> None:
        """`export`, `declare`, `unset` …: a command whose arguments may be assignments."""
        words: list[Word] = []
        for child in node.children:
            if child.type == "variable_assignment":
                assignment = self._assignment(child)
                self._assignments.append(assignment)
                value = "" if assignment.value is None else assignment.value.text
                words.append(Word(text=f"{assignment.name}={value}", raw=assignment.raw))
            elif child.type in ("file_redirect", "heredoc_redirect", "herestring_redirect"):
                self._nested.append(child)
            else:
                words.append(self._words.read(child))
        self._emit(node, words)

    def _test(self, node: Node) -> None:
        """`[[ … ]]` and `[ … ]` run nothing themselves, unless they reckon."""
        if node.children[0].type not in ("[[", "["):
            self.note("opaque", "arithmetic with variables, which can run commands", node)
        elif _ARITHMETIC.search(self._text(node)) and re.search(r"-(eq|ne|lt|le|gt|ge|v|R)\b", self._text(node)):
            self.note("opaque", "a test that reckons, which can run commands", node)
        self._only_inside(node)

    def _only_inside(self, node: Node) -> None:
        """Words that are data: only what they run while they are read counts."""
        stack = [node]
        while stack:
            child = stack.pop()
            if child.type in _READ_AS_WORDS:
                self._words.read(child)
            else:
                stack.extend(child.children)

    # ---- assignments

    def _alone(self, node: Node) -> None:
        parts = node.children if node.type == "variable_assignments" else [node]
        self._assignments.extend(self._assignment(part) for part in parts)

    def _assignment(self, node: Node) -> Assignment:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        plain = self._text(name) if name is not None else ""
        if name is None or name.type != "variable_name" or not plain.isascii():
            self.note("opaque", "an assignment to an element, whose index can run commands", node)
        word = None
        if value is not None and value.type == "array":
            for item in value.children:
                if item.is_named:
                    if self._text(item).lstrip().startswith("["):
                        self.note("opaque", "an array's index, which can run commands", item)
                    self._words.read(item)
        elif value is not None:
            word = self._words.read(value)
        return Assignment(name=plain.split("[")[0], value=word, raw=self._text(node)[:MAX_TEXT])

    # ---- redirections

    def _redirect_alone(self, node: Node) -> None:
        extra = self._redirect(node)
        if extra:
            self.note("opaque", "words after a redirection", node)
            self._emit(node, extra)

    def _redirect(self, node: Node) -> list[Word]:
        """Keep the redirection; return the words after its target, which belong to the command."""
        self._gaps(node)
        if self._source[node.start_byte - 1 : node.start_byte] == b"}":
            self.note("opaque", "a redirection to a named descriptor, whose index can run commands", node)
        operator = ""
        words: list[Word] = []
        for child in node.children:
            if child.type == "file_descriptor":
                if "[" in self._text(child):
                    self.note("opaque", "a redirection to an element, whose index can run commands", child)
                continue
            if not child.is_named and not operator:
                operator = child.type
            else:
                words.append(self._words.read(child))
        if operator == "<<<" or not words:
            return words[1:]
        target = words[0]
        if operator in (">&", "<&") and target.static and re.fullmatch(r"[0-9]+-?|-", target.text):
            return words[1:]
        if operator not in (">", ">>", "<", "&>", "&>>", ">|", ">&", "<&", "<>"):
            self.note("opaque", "a redirection that isn't known", node)
        self._redirects.append(Redirect(operator=operator, target=target, raw=self._text(node)[:MAX_TEXT]))
        return words[1:]

    def _heredoc(self, node: Node) -> None:
        if fault := heredoc_fault(node, self._source):
            self.note("opaque", fault, node)
        for child in node.children:
            if child.type == "heredoc_body":
                self._only_inside(child)
            elif child.type in _STATEMENTS or child.type in ("file_redirect", "herestring_redirect"):
                self._nested.append(child)
            elif child.type not in ("<<", "<<-", "heredoc_start", "heredoc_end", "file_descriptor", *_TOKENS):
                self.note("opaque", "words after a here-document", node)
                self._words.read(child)

    # ---- compound commands

    def _for(self, node: Node) -> None:
        for child in node.children:
            if child.type == "variable_name":
                self._assignments.append(
                    Assignment(name=self._text(child), raw=f"{node.children[0].type} {self._text(child)}")
                )
            elif child.type in ("do_group", "compound_statement") or not child.is_named:
                self._nested.append(child)
            else:
                self._words.read(child)

    def _case(self, node: Node) -> None:
        for at, child in enumerate(node.children):
            if node.field_name_for_child(at) == "value":
                self._only_inside(child)
            else:
                self._nested.append(child)

    def _function(self, node: Node) -> None:
        self.note("opaque", "a function is defined", node)
        for at, child in enumerate(node.children):
            if node.field_name_for_child(at) != "name":
                self._nested.append(child)

    def _arithmetic(self, node: Node) -> None:
        self.note("opaque", "arithmetic with variables, which can run commands", node)
        for child in node.children:
            if child.type in _STATEMENTS and child.type not in ("variable_assignment", "variable_assignments"):
                self._nested.append(child)
            else:
                self._only_inside(child)

    def _comment(self, node: Node) -> None:
        """A comment hides text: only where the shell, too, sees one."""
        before = self._source[node.start_byte - 1 : node.start_byte]
        if before and before not in b" \t\n;&|()":
            self.note("opaque", "a comment where the shell may see none", node)


__all__ = ["reduce_line"]
