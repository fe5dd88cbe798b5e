"""What is generated is kept to what a short run can ask: nobody waits long, and nobody opens a
stream that never ends."""

import schemathesis

# The longest a generated call may wait, in milliseconds.
PATIENCE = 50
# What is longer the daemon refuses at once.
LONGEST = 3_600_000


@schemathesis.hook
def before_call(context, case, kwargs):
    if isinstance(case.body, dict):
        case.body = whole(case.body)
        if case.method == "POST" and case.path == "/v1/leases":
            case.body = patient(case.body)
    for name in [name for name in case.headers or {} if name.lower() == "accept"]:
        if "event-stream" in str(case.headers[name]):
            del case.headers[name]


def patient(body):
    said = body.get("timeout_ms")
    waits = said is None or (type(said) is int and PATIENCE < said <= LONGEST)
    return {**body, "timeout_ms": PATIENCE} if waits else body


def whole(value):
    """746.0 is an integer to JSON Schema, and none to the daemon."""
    if isinstance(value, dict):
        return {key: whole(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [whole(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
