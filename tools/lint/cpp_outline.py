"""Finds what a C++ source declares: the bodies of its functions, and its classes with the names of their public methods.
It reads tokens and does not know the grammar. Requires: clang-format has formatted the source, and a compiler accepts it."""

import dataclasses
import re

from cpp_tokens import tokens


@dataclasses.dataclass
class Function:
    name: str  # as at the definition: "Session::Run"; of a test: "TEST_F"
    line: int
    lines: int  # from the first line of its declaration to the closing brace


@dataclasses.dataclass
class Class:
    name: str
    line: int
    methods: set  # names of public methods


MACRO = re.compile(r"[A-Z][A-Z0-9_]+$")
CLOSING = {"(": ")", "[": "]", "{": "}"}
NOT_METHODS = {"using", "friend", "typedef", "static_assert"}


def outline(text):
    """Returns ([Function], [Class]) in the order of the source."""
    reader = _Reader(tokens(text))
    reader.scope(None)
    return reader.functions, reader.classes


class _Reader:
    def __init__(self, found):
        self.tokens = found
        self.at = 0
        self.functions, self.classes = [], []

    def scope(self, owner):
        """Reads declarations up to the closing brace of a namespace (owner None) or a class, or to the end."""
        public = owner is None or owner.public
        draft = []
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            if token.text == "}" and token.kind == "mark":
                self.at += 1
                return
            if token.text in ("public", "private", "protected") and self._next_is(":") and not draft:
                public = token.text == "public"
                self.at += 2
            elif token.kind == "mark" and token.text == ";":
                self._declared(owner, public, draft)
                draft = []
                self.at += 1
            elif token.kind == "mark" and token.text == "{":
                draft = self._brace(owner, public, draft)
            elif token.kind == "mark" and token.text in "([":
                draft.append(token)
                begin = self.at
                self._skip()
                draft += self.tokens[begin + 1:self.at]
            else:
                draft.append(token)
                self.at += 1

    def _next_is(self, text):
        return self.at + 1 < len(self.tokens) and self.tokens[self.at + 1].text == text

    def _skip(self):
        """Skips from an opening bracket to the token after its closing one."""
        depth = 0
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            if token.kind == "mark" and token.text in "([{":
                depth += 1
            elif token.kind == "mark" and token.text in ")]}":
                depth -= 1
            self.at += 1
            if depth == 0:
                return

    def _brace(self, owner, public, draft):
        """Reads the braces after `draft`. Returns the part of the draft that goes on after the closing brace."""
        flat = _outermost(draft)
        words = [token.text for token in flat]
        if "namespace" in words or (words[:1] == ["extern"] and len(words) == 2):
            self.at += 1
            self.scope(None)
            return []
        name = _class_name(flat)
        if name:
            return self._class(owner, name, draft, words)
        if words[:1] == ["enum"] or _is_value(flat):
            begin = self.at
            self._skip()
            return draft + self.tokens[begin:self.at]
        begin = (draft or [self.tokens[self.at]])[0].line
        self._skip()
        function = _function_name(draft)
        end = self.tokens[self.at - 1].line
        self.functions.append(Function(function or "?", begin, end - begin + 1))
        if function and owner and public:
            self._method(owner, function, flat)
        return []

    def _class(self, owner, name, draft, words):
        known = Class(f"{owner.known.name}::{name}" if owner else name, draft[0].line, set())
        self.classes.append(known)
        self.at += 1
        self.scope(_Owner(known, name, "class" not in words))
        # `struct A {...} a;`: the rest is a variable.
        return [token for token in draft if token.text not in ("struct", "class", "union")]

    def _declared(self, owner, public, draft):
        flat = _outermost(draft)
        name = _function_name(draft)
        if owner and public and name and not _is_value(flat):
            self._method(owner, name, flat)

    def _method(self, owner, name, flat):
        words = {token.text for token in flat}
        if words & NOT_METHODS or "operator" in words or "~" in words or name == owner.name or MACRO.match(name):
            return
        owner.known.methods.add(name)


@dataclasses.dataclass
class _Owner:
    known: Class
    name: str
    public: bool


def _outermost(draft):
    """Returns the tokens outside of brackets and template brackets. Of the brackets only the opening ones are kept."""
    flat, closing = [], []
    for i, token in enumerate(draft):
        if token.kind == "mark" and token.text in CLOSING:
            if not closing:
                flat.append(token)
            closing.append(CLOSING[token.text])
        elif token.kind == "mark" and token.text == "<" and i > 0 and draft[i - 1].kind == "word" and \
                draft[i - 1].text != "operator":
            closing.append(">")
        elif closing and token.kind == "mark" and token.text == closing[-1]:
            closing.pop()
        elif not closing:
            flat.append(token)
    return flat


def _class_name(flat):
    """"A" of `class EXPORT A final : public B`; None for anything else."""
    words = [token.text for token in flat]
    keywords = [i for i, word in enumerate(words) if word in ("class", "struct", "union")]
    if not keywords or "(" in words or "=" in words or "enum" in words:
        return None
    for i in range(keywords[0] + 1, len(words)):
        if words[i] in (":", "final"):
            break
        if flat[i].kind == "word" and not MACRO.match(words[i]):
            name = words[i]
            rest = words[i + 1:i + 2]
            return name if rest in ([], [":"], ["final"], ["::"]) else None
    return "(unnamed)" if len(words) == keywords[0] + 1 else None


def _is_value(flat):
    """Returns whether a brace after these tokens begins a value and not a body."""
    words = [token.text for token in flat]
    if "operator" in words:
        return False
    if "=" in words and ("(" not in words or words.index("=") < words.index("(")):
        return True
    if "(" not in words:
        return True
    # In a constructor's list of initializers (`: a_{1}`) a brace begins a value. A body comes after ")" or "}".
    after = words[words.index("("):]
    return ":" in after and flat[-1].kind == "word" and flat[-1].text not in ("const", "noexcept", "override", "try")


def _function_name(draft):
    """"A::B" of `int A::B(...)`: the words before the first parenthesis; None if there is none."""
    flat = _outermost(draft)
    words = [token.text for token in flat]
    if "operator" in words:
        return "operator"
    while "(" in words:
        i = words.index("(")
        # The parenthesis of an attribute or a specifier is not the function's.
        if i > 0 and flat[i - 1].kind == "word" and words[i - 1] not in ("alignas", "decltype", "explicit", "noexcept"):
            name = words[i - 1]
            i -= 1
            if i > 0 and words[i - 1] == "~":
                name, i = "~" + name, i - 1
            while i > 1 and words[i - 1] == "::" and flat[i - 2].kind == "word":
                name, i = words[i - 2] + "::" + name, i - 2
            return name
        words[i] = ""
    return None
