"""Values of a given size, as JSON text."""

MIB = 1 << 20


def text(size):
    return '"' + "x" * (size - 2) + '"'


def node(mib):
    """An object of so many texts of almost 1 MiB each: longer single texts are refused."""
    return "{" + ",".join(f'"part{number:02}":{text(MIB - 16)}' for number in range(mib)) + "}"


def members(count, size):
    """An object of small members, `size` bytes of text each."""
    return "{" + ",".join(f'"m{number:06}":"{"y" * (size - 14)}"' for number in range(count)) + "}"


def elements(count, size):
    """An array of small texts, `size` bytes each."""
    element = '"' + "z" * (size - 3) + '"'
    return "[" + ",".join([element] * count) + "]"


def repeated(element, size, last=None):
    """An array of so many bytes of one element. `last` stands at its end, so that something is stored."""
    return "[" + ",".join([element] * (size // (len(element) + 1)) + ([last] if last else [])) + "]"


def nested(depth, inner=""):
    """Arrays in arrays."""
    return "[" * depth + inner + "]" * depth
