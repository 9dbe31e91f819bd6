"""What the codes of flows mean: cause, and the way out."""

from typing import Final

FLOW_CODES: Final[dict[str, tuple[str, str]]] = {
    "flow.after": (
        "`after=` of a call was given something that comes from no step.",
        "Give what steps of this flow gave, their names, or success(...).",
    ),
    "flow.arguments": (
        "A step or flow was called with arguments that its function does not take.",
        "Call it as the function is declared; `name`, `after` and `when` are options of the call.",
    ),
    "flow.async": (
        "@flow stands on an `async def`.",
        "Make it a plain `def` that calls its steps without await; for a loop use @loop.",
    ),
    "flow.build": (
        "A flow with build=True was asked for its plan without an input.",
        "Start it, or ask for flow.built(input).",
    ),
    "flow.called": (
        "A flow was called outside of another flow.",
        "Start it: `await pawl.start(flow, input)`. Its steps can be called by themselves.",
    ),
    "flow.child": (
        "child() was given neither a flow nor the name of a workflow.",
        "Give a function with @flow, or a name.",
    ),
    "flow.each": (
        "The function given to each() does not call exactly one step, or each() stands in each().",
        "Put several steps into a flow of their own, and give that to each().",
    ),
    "flow.expression": (
        "The text given to expr() is no expression.",
        "See the page on expressions; the message says where it ends.",
    ),
    "flow.foreign_ref": (
        "A Ref, or the name of a step, belongs to another flow, or to a step further down.",
        "Use what this flow has made so far; pass anything else on as input.",
    ),
    "flow.function": (
        "Something that is no plain function was made a step or a flow: a method, a generator, "
        "something without a name.",
        "Write a plain `def` (or `async def` for a step) at the top of a module.",
    ),
    "flow.input": (
        "The input does not fit the parameters of a flow, or its type has no schema.",
        "Give a mapping with the names of the parameters, or input= a JSON Schema.",
    ),
    "flow.invalid": (
        "What the flow says is no valid workflow; the message has the first reason and its line.",
        "Mend it; the same rules hold as for a file.",
    ),
    "flow.name": (
        "A step would get a name that steps cannot have.",
        'Give the call a name="..." of small letters, digits, - and _.',
    ),
    "flow.option": (
        "A step or flow was given an option that it does not have, or a value of another kind.",
        "The message lists the options.",
    ),
    "flow.outside": (
        "A word of flows, such as approval(), was used where no flow is traced.",
        "Use it inside a function with @flow.",
    ),
    "flow.raised": (
        "The function of a flow raised while it was read; the message says what, and where.",
        "Mend it; while a flow is read there are no values, only Refs.",
    ),
    "flow.ref_misuse": (
        "A value was needed while the flow is traced, when there are none yet: in an if, a for, "
        "an f-string, len() and the like.",
        "Use when=, each(), text() or expr(), or do it inside a step.",
    ),
    "flow.secret": (
        "A secret stands where nobody would resolve it: in a text, a condition, an event, say.",
        "Give secret(...) to a step or an agent as an argument, by itself.",
    ),
    "flow.step_twice": (
        "A flow calls a step twice under one name.",
        'Give the second call name="...", or use each() for a list.',
    ),
    "flow.text": (
        "text() was given too few or too many values for its form.",
        "One value for each {}, and one of its name for each {name}.",
    ),
    "flow.two_functions": (
        "Two functions of a flow stand for the same effect.",
        "Give one of them another @step(name=...).",
    ),
    "flow.value": (
        "A value cannot be kept in a definition.",
        "Use null, booleans, numbers, texts, lists and mappings, or make it inside a step.",
    ),
}
