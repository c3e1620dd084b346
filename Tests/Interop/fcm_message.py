"""What FCM v1 takes as a message: names, kinds of values and rules, after its public reference."""

import re

import aps

DURATION = re.compile(r"(0|[1-9][0-9]*)(\.[0-9]{1,9})?s")
COLOR = {"red": "number", "green": "number", "blue": "number", "alpha": "number"}
ANDROID_NOTIFICATION = {
    "title": "string", "body": "string", "icon": "string", "color": "string", "sound": "string", "tag": "string",
    "click_action": "string", "body_loc_key": "string", "body_loc_args": ["string"], "title_loc_key": "string",
    "title_loc_args": ["string"], "channel_id": "string", "ticker": "string", "sticky": "bool",
    "event_time": "timestamp", "local_only": "bool", "default_sound": "bool", "default_vibrate_timings": "bool",
    "default_light_settings": "bool", "vibrate_timings": ["duration"], "notification_count": "int32",
    "image": "string", "bypass_proxy_notification": "bool",
    "notification_priority": {
        "PRIORITY_UNSPECIFIED", "PRIORITY_MIN", "PRIORITY_LOW", "PRIORITY_DEFAULT", "PRIORITY_HIGH", "PRIORITY_MAX"},
    "visibility": {"VISIBILITY_UNSPECIFIED", "PRIVATE", "PUBLIC", "SECRET"},
    "light_settings": {"color": COLOR, "light_on_duration": "duration", "light_off_duration": "duration"},
    "proxy": {"PROXY_UNSPECIFIED", "ALLOW", "DENY", "IF_PRIORITY_LOWERED"},
}
MESSAGE = {
    "name": "string", "data": "map", "token": "string", "topic": "string", "condition": "string", "fid": "string",
    "notification": {"title": "string", "body": "string", "image": "string"},
    "android": {
        "collapse_key": "string", "priority": {"NORMAL", "HIGH"}, "ttl": "duration",
        "restricted_package_name": "string", "data": "map", "notification": ANDROID_NOTIFICATION,
        "fcm_options": {"analytics_label": "string"}, "direct_boot_ok": "bool", "bandwidth_constrained_ok": "bool",
        "restricted_satellite_ok": "bool",
    },
    "webpush": {
        "headers": "map", "data": "map", "notification": "struct",
        "fcm_options": {"link": "string", "analytics_label": "string"},
    },
    "apns": {
        "headers": "map", "payload": "struct", "fcm_options": {"analytics_label": "string", "image": "string"},
        "live_activity_token": "string",
    },
    "fcm_options": {"analytics_label": "string"},
}
REQUEST = {"validate_only": "bool", "message": MESSAGE}
KINDS = {
    "string": ("TYPE_STRING", lambda value: isinstance(value, str)),
    "bool": ("TYPE_BOOL", lambda value: isinstance(value, bool)),
    "number": ("TYPE_FLOAT", aps.is_number),
    "int32": ("TYPE_INT32", lambda value: isinstance(value, int) and not isinstance(value, bool)
              and -1 << 31 <= value < 1 << 31),
    "duration": ("type.googleapis.com/google.protobuf.Duration",
                 lambda value: isinstance(value, str) and DURATION.fullmatch(value) is not None),
    "timestamp": ("type.googleapis.com/google.protobuf.Timestamp",
                  lambda value: isinstance(value, str)
                  and re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", value) is not None),
    "struct": ("type.googleapis.com/google.protobuf.Struct", lambda value: isinstance(value, dict)),
}


def camel(name):
    return re.sub(r"_([a-z])", lambda match: match.group(1).upper(), name)


def violations(value, schema=None, path=""):
    """(field, description) for each name and value that has no place, and the value with names as in the reference."""
    schema = REQUEST if schema is None else schema
    if isinstance(schema, dict):
        return message_violations(value, schema, path)
    if isinstance(schema, set):
        # In any case: firebase-admin sends `high`.
        if isinstance(value, str) and value.upper() in schema:
            return [], value.upper()
        return [(path, f"Invalid value at '{path}' (enum), {value!r}")], value
    if isinstance(schema, list):
        if not isinstance(value, list):
            return [(path, f"Invalid value at '{path}' (list), {value!r}")], value
        return [
            found for index, item in enumerate(value) for found in violations(item, schema[0], f"{path}[{index}]")[0]
        ], value
    if schema == "map":
        if not isinstance(value, dict):
            return [(path, f"Invalid value at '{path}' (map), {value!r}")], value
        return [
            (f"{path}[{index}].value", f"Invalid value at '{path}[{index}].value' (TYPE_STRING), {item!r}")
            for index, item in enumerate(value.values()) if not isinstance(item, str)
        ], value
    kind, check = KINDS[schema]
    return ([] if check(value) else [(path, f"Invalid value at '{path}' ({kind}), {value!r}")]), value


def message_violations(value, schema, path):
    if not isinstance(value, dict):
        return [(path, f"Invalid value at '{path}' (message), {value!r}")], value
    names = {camel(name): name for name in schema} | {name: name for name in schema}
    found, members = [], {}
    for name, item in value.items():
        if name not in names:
            where = f" at '{path}'" if path else ""
            found.append((path, f'Invalid JSON payload received. Unknown name "{name}"{where}: Cannot find field.'))
        elif names[name] in members:
            found.append((path, f'Invalid value at \'{path}\' (oneof), "{name}" stands twice'))
        elif item is not None:
            inner, members[names[name]] = violations(
                item, schema[names[name]], f"{path}.{names[name]}" if path else names[name])
            found += inner
    return found, members


def text_bytes(value):
    """The bytes of all names and texts."""
    if isinstance(value, dict):
        return sum(len(name.encode()) + text_bytes(item) for name, item in value.items())
    if isinstance(value, list):
        return sum(map(text_bytes, value))
    return len(str(value).encode())


def rule_violations(message):
    """(field, description) for each rule beyond names and kinds."""
    found = []
    targets = [name for name in ("token", "topic", "condition", "fid") if message.get(name)]
    if len(targets) != 1:
        found.append(("message", "Exactly one of token, topic, condition and fid must be specified"))
    if not re.fullmatch(r"[a-zA-Z0-9\-_.~%]+", message.get("topic", "t")):
        found.append(("message.topic", "Invalid topic name"))
    android, webpush, apns = (message.get(name, {}) for name in ("android", "webpush", "apns"))
    for place, data in (("message", message), ("message.android", android), ("message.webpush", webpush)):
        for key in data.get("data", {}):
            if key in ("from", "message_type") or key.startswith(("google", "gcm")):
                found.append((f"{place}.data", f"Invalid data payload key: {key}"))
    seconds = float(android.get("ttl", "0s")[:-1])
    if seconds > 2_419_200:
        found.append(("message.android.ttl", "Invalid time to live: more than 2419200 seconds"))
    color = android.get("notification", {}).get("color")
    if color is not None and not re.fullmatch(r"#[0-9a-fA-F]{6}", color):
        found.append(("message.android.notification.color", "Invalid color: #rrggbb is wanted"))
    notification = message.get("notification", {}) | android.get("notification", {})
    size = text_bytes(notification) + text_bytes(message.get("data", {}) | android.get("data", {}))
    if size > 4_096:
        found.append(("message", "Android message is too big"))
    return found + apns_violations(apns) + webpush_violations(webpush)


def apns_violations(apns):
    found = []
    headers, payload = apns.get("headers", {}), apns.get("payload", {})
    for name, value in headers.items():
        if not name.lower().startswith("apns-"):
            found.append(("message.apns.headers", f"Invalid header {name}"))
    if headers.get("apns-priority", "10") not in ("10", "5", "1"):
        found.append(("message.apns.headers", "Invalid apns-priority"))
    if not re.fullmatch(r"[0-9]{1,10}", headers.get("apns-expiration", "0")):
        found.append(("message.apns.headers", "Invalid apns-expiration"))
    if len(headers.get("apns-collapse-id", "").encode()) > 64:
        found.append(("message.apns.headers", "apns-collapse-id has more than 64 bytes"))
    if "aps" in payload:
        found += [("message.apns.payload", problem) for problem in aps.aps_problems(payload["aps"])]
    if text_bytes(payload) > 4_096:
        found.append(("message.apns.payload", "APNs payload is too big"))
    return found


def webpush_violations(webpush):
    found = []
    headers = {name.lower(): value for name, value in webpush.get("headers", {}).items()}
    if not re.fullmatch(r"[0-9]{1,10}", headers.get("ttl", "0")):
        found.append(("message.webpush.headers", "Invalid TTL"))
    if headers.get("urgency", "normal") not in ("very-low", "low", "normal", "high"):
        found.append(("message.webpush.headers", "Invalid Urgency"))
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,32}", headers.get("topic", "t")):
        found.append(("message.webpush.headers", "Invalid Topic"))
    if not webpush.get("fcm_options", {}).get("link", "https://").startswith("https://"):
        found.append(("message.webpush.fcm_options.link", "Invalid link: https is wanted"))
    return found
