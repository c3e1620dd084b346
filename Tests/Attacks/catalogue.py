"""All attacks by their names."""

import dataclasses

import connecting
import listening
import notifying
import querying
import reading
import writing
from worker import Attack

MODULES = (reading, writing, listening, connecting, querying, notifying)
PLAIN = {attack.name: attack for module in MODULES for attack in module.ATTACKS}
NAMES = (*PLAIN, "mix")


def built(name):
    """The attack with the bytes that it sends, ready for `prepare` and for its processes."""
    return mix() if name == "mix" else PLAIN[name].built()


def mix():
    """All of the above with a quarter of their connections, which begin and end at random."""
    roles = []
    for attack in PLAIN.values():
        for role in attack.built().roles:
            roles.append(dataclasses.replace(role, connections=max(1, role.connections // 4)))

    def prepare(setup):
        for attack in PLAIN.values():
            attack.prepare(setup)

    return Attack("mix", tuple(roles), prepare=prepare, is_restless=True)


def description(name):
    functions = [mix] if name == "mix" else [role.function for role in PLAIN[name].roles]
    return " ".join(function.__doc__.strip() for function in functions)
