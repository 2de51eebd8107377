"""What a client asks of the model itself, its tools and the form of its answers: passed on."""

from collections.abc import Mapping, Sequence
from typing import Any

from rag.errors import UserError

CHOICES = ("auto", "none", "required")
FORMS = ("text", "json_object", "json_schema")
NOBODY = "{}: no language model is set here, and without one this cannot be done. Leave it out."


def client_options(
    *,
    tools: Sequence[Mapping[str, Any]] | None,
    choice: object,
    parallel: bool | None,
    form: tuple[str, Mapping[str, Any] | None],
    has_model: bool,
) -> dict[str, Any]:
    """All of it in the words of chat completions. Raises UserError, by the name of the field.

    `form` is the field that asks for one, and what stands in it.
    """
    offered = [_tool(each) for each in tools or ()]
    if not has_model:
        _refuse_without_model(choice, form)
        return {}  # tools that may be called are not: many clients send some with every question
    results: dict[str, Any] = {}
    if offered:
        results["tools"] = offered
        if parallel is not None:
            results["parallel_tool_calls"] = parallel
    chosen = _choice(choice)
    if tools and chosen is not None:
        results["tool_choice"] = chosen
    elif chosen not in (None, "auto", "none"):
        raise UserError("tool_choice: there are no tools to choose from. Send `tools` along.")
    wanted = _form(*form)
    return results | ({} if wanted is None else {"response_format": wanted})


def _refuse_without_model(choice: object, form: tuple[str, Mapping[str, Any] | None]) -> None:
    if choice not in (None, "auto", "none"):
        raise UserError(NOBODY.format("tool_choice"))
    field, wanted = form
    if wanted and wanted != {"type": "text"}:
        raise UserError(NOBODY.format(field))


def _tool(given: Mapping[str, Any]) -> dict[str, Any]:
    kind = given.get("type")
    if kind != "function":
        raise UserError(
            f"tools: one is of type {str(kind)[:60]!r}. Only functions, which you run yourself, "
            "are passed on to the model."
        )
    function = given.get("function", {key: given[key] for key in given if key != "type"})
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise UserError("tools: one has no name. A function needs `name` and `parameters`.")
    return {"type": "function", "function": {k: v for k, v in function.items() if v is not None}}


def _choice(choice: object) -> object:
    if choice is None or choice in CHOICES:
        return choice
    if isinstance(choice, Mapping) and choice.get("type") == "function":
        function = choice.get("function", choice)
        if isinstance(function, Mapping) and isinstance(function.get("name"), str):
            return {"type": "function", "function": {"name": function["name"]}}
    known = ", ".join(CHOICES)
    raise UserError(f"tool_choice: it is none of {known}, and names no function of yours.")


def _form(field: str, given: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if not given or given.get("type") == "text":
        return None
    if given.get("type") not in FORMS:
        known = ", ".join(FORMS)
        raise UserError(f"{field}: {str(given.get('type'))[:60]!r} is not known. Known: {known}.")
    if given["type"] == "json_object" or "json_schema" in given:
        return dict(given)
    schema = {key: given[key] for key in given if key != "type" and given[key] is not None}
    return {"type": "json_schema", "json_schema": schema}
