"""`/docs`: the routes of the HTTP API as a page, made from the OpenAPI document."""

from __future__ import annotations

from typing import Any

from counterfoil.api.ui import pages
from counterfoil.scrollback.page.words import line


def docs_page(document: dict[str, Any]) -> str:
    """The page."""
    found = [
        f"<section><h2><code>{method.upper()} {line(path)}</code></h2>{_operation(operation)}</section>"
        for path, methods in sorted(document["paths"].items())
        for method, operation in methods.items()
    ]
    schemas = document["components"]["schemas"]
    kinds = [
        f'<section id="{line(name)}"><h3>{line(name)}</h3>{_fields(schema)}</section>'
        for name, schema in sorted(schemas.items())
    ]
    info = document["info"]
    head = (
        f"<h1>{line(info['title'])} {line(info['version'])}</h1>"
        "<p>Send <code>Authorization: Bearer TOKEN</code> where the server wants tokens. Errors are "
        '<code>application/problem+json</code>. Programs read <a href="/openapi.json">/openapi.json</a>.</p>'
    )
    return pages.page("API", f"{head}{''.join(found)}<h2>Messages</h2>{''.join(kinds)}", script=False)


def _operation(operation: dict[str, Any]) -> str:
    rows = [f"<li><code>{line(p['name'])}</code> in the {line(p['in'])}</li>" for p in operation["parameters"]]
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    rows += [
        f"<li><code>{line(name)}</code> in the body: {_kind(schema)}</li>"
        for name, schema in body.get("properties", {}).items()
    ]
    told = [
        _kind(content.get("schema", {})) if kind == "application/json" else line(kind)
        for kind, content in operation["responses"]["200"]["content"].items()
    ]
    return f"<ul>{''.join(rows)}</ul><p>Answers with {', '.join(told)}.</p>"


def _fields(schema: dict[str, Any]) -> str:
    rows = (f"<li><code>{line(n)}</code>: {_kind(s)}</li>" for n, s in schema.get("properties", {}).items())
    return f"<ul>{''.join(rows)}</ul>"


def _kind(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        name = line(schema["$ref"].rsplit("/", 1)[1])
        return f'<a href="#{name}">{name}</a>'
    if schema.get("type") == "array":
        return f"a list of {_kind(schema['items'])}"
    return line(schema.get("format") or schema.get("type", "any"))
