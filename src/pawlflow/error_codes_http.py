"""What the codes of HTTP endpoints and completions mean: cause, and the way out."""

from typing import Final

HTTP_CODES: Final[dict[str, tuple[str, str]]] = {
    "http.answer": (
        "An endpoint answered with success, but not with JSON; what it was asked for may be done.",
        "Let it answer JSON, or nothing at all; then retry the step: it has the same key.",
    ),
    "http.client": (
        "The client for HTTP endpoints is not installed.",
        "pip install 'pawlflow[http]'",
    ),
    "http.endpoint": (
        "An endpoint cannot be registered as it is written; the message names the option.",
        "Mend it; docs/http.md lists the options.",
    ),
    "http.findings": (
        "An endpoint answered 422 with findings: the request can be corrected.",
        "Look at the findings; with maxCorrectionAttempts the step is asked again with them.",
    ),
    "http.header": (
        "A header of a request would hold signs that no header may have.",
        "Look at the secret that it names: a line break at its end is the usual reason.",
    ),
    "http.refused": (
        "A URL, an address that it resolves to, or a redirect is not called by default.",
        "If it is meant, list its host or network in `allow`, its port in `ports` (docs/http.md).",
    ),
    "http.status": (
        "An endpoint answered with a status that means failure; the message has its words.",
        "Look at the endpoint; `retry_on` says which answers are worth another attempt.",
    ),
    "http.timeout": (
        "An endpoint did not answer within the `timeout` of its registration.",
        "Nothing, if the step has retries: they have the same key. Else give it longer.",
    ),
    "http.too_large": (
        "An endpoint answered more than one value may take.",
        "Let it answer a reference to what is large.",
    ),
    "http.unreachable": (
        "An endpoint could not be connected to, or the connection broke.",
        "Nothing, if the step has retries. Else look at name, port and certificate.",
    ),
    "receipt.class": (
        "A completion says both a result and a failure, or a class of failures there is none of.",
        "Give a result, or one of the classes that the message lists.",
    ),
    "receipt.key": (
        "A completion was given a key that can be none.",
        "Give the Idempotency-Key of the request, a UUID.",
    ),
}
