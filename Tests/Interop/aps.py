"""What may stand in the `aps` member of a payload, after Apple's "Generating a remote notification"."""

LEVELS = {"passive", "active", "time-sensitive", "critical"}
ALERT_TEXTS = {
    "title", "subtitle", "body", "launch-image", "title-loc-key", "subtitle-loc-key", "loc-key", "action-loc-key",
}
ALERT_LISTS = {"title-loc-args", "subtitle-loc-args", "loc-args"}
LIVE_ACTIVITY = {
    "timestamp", "event", "content-state", "stale-date", "dismissal-date", "attributes-type", "attributes",
    "input-push-token", "input-push-channel",
}


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def is_count(value):
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def is_text(value):
    return isinstance(value, str)


def is_one(value):
    return value == 1 and not isinstance(value, bool)


CHECKS = {
    "badge": (is_count, "a number, 0 or more"),
    "thread-id": (is_text, "a text"),
    "category": (is_text, "a text"),
    "content-available": (is_one, "1"),
    "mutable-content": (is_one, "1"),
    "target-content-id": (is_text, "a text"),
    "interruption-level": (lambda value: value in LEVELS, f"one of {', '.join(sorted(LEVELS))}"),
    "relevance-score": (lambda value: is_number(value) and 0 <= value <= 1, "a number of 0 to 1"),
    "filter-criteria": (is_text, "a text"),
}


def alert_problems(alert):
    if isinstance(alert, str):
        return []
    if not isinstance(alert, dict):
        return ["aps.alert is neither a text nor an object"]
    problems = []
    for name, value in alert.items():
        if name in ALERT_TEXTS:
            if not isinstance(value, str):
                problems.append(f"aps.alert.{name} is no text")
        elif name in ALERT_LISTS:
            if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
                problems.append(f"aps.alert.{name} is no list of texts")
        else:
            problems.append(f"aps.alert.{name} is unknown")
    return problems


def sound_problems(sound):
    if isinstance(sound, str):
        return []
    if not isinstance(sound, dict):
        return ["aps.sound is neither a text nor an object"]
    problems = [f"aps.sound.{name} is unknown" for name in sound if name not in ("critical", "name", "volume")]
    if not isinstance(sound.get("name"), str):
        problems.append("aps.sound.name is no text")
    if sound.get("critical", 0) not in (0, 1):
        problems.append("aps.sound.critical is neither 0 nor 1")
    volume = sound.get("volume", 1)
    if not is_number(volume) or not 0 <= volume <= 1:
        problems.append("aps.sound.volume is no number of 0 to 1")
    return problems


def aps_problems(aps, push_type="alert"):
    """What is wrong with an `aps`, in words."""
    if not isinstance(aps, dict):
        return ["aps is no object"]
    problems = []
    for name, value in aps.items():
        if name == "alert":
            problems += alert_problems(value)
        elif name == "sound":
            problems += sound_problems(value)
        elif name in CHECKS:
            check, wanted = CHECKS[name]
            if not check(value):
                problems.append(f"aps.{name} is not {wanted}")
        elif not (name in LIVE_ACTIVITY and push_type == "liveactivity"):
            problems.append(f"aps.{name} is unknown: own members stand beside aps")
    return problems


def type_problems(aps, push_type):
    """Where a push type and its payload do not match."""
    if push_type == "background":
        problems = [f"aps.{name} in a background push" for name in ("alert", "sound") if name in aps]
        return problems if "content-available" in aps else problems + ["a background push without content-available"]
    if push_type == "alert" and not {"alert", "badge", "sound"} & set(aps):
        return ["an alert push without alert, badge and sound"]
    return []
