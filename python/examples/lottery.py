"""Lottery scheduling (Waldspurger and Weihl, OSDI 1994): each slice goes to the holder of a random ticket."""

import random

import overspin


@overspin.register_scheduler
class Lottery(overspin.Scheduler):
    """Lottery: a vCPU has as many tickets as its domain has weight, and each slice is a draw."""

    slice = 10 * overspin.MS

    def __init__(self) -> None:
        self.waiting: list[int] = []
        # A seed: the same calls must have the same answers.
        self.random = random.Random(1994)

    def wake(self, now: int, vcpu: int) -> None:
        self.waiting.append(vcpu)

    def sleep(self, now: int, vcpu: int) -> None:
        self.waiting.remove(vcpu)

    def schedule(self, now: int, pcpu: int) -> tuple[int, int] | None:
        current = self.machine.current(pcpu)
        if current is not None and self.machine.is_runnable(current):
            self.waiting.append(current)
        players = [vcpu for vcpu in self.waiting if self.machine.can_run(vcpu, pcpu)]
        if not players:
            return None
        tickets = [self.machine.weight(vcpu) for vcpu in players]
        winner = self.random.choices(players, tickets)[0]
        self.waiting.remove(winner)
        return winner, self.slice
