"""Round robin in Python: the same decisions as the built-in scheduler `rr`."""

import overspin


@overspin.register_scheduler
class RoundRobin(overspin.Scheduler):
    """Round robin: one queue for all pCPUs, first come, first served, with a quantum."""

    name = "py-rr"
    quantum = 10 * overspin.MS

    def __init__(self) -> None:
        self.queue: list[int] = []
        self.began: dict[int, int] = {}
        self.yielding: set[int] = set()

    def wake(self, now: int, vcpu: int) -> None:
        self.queue.append(vcpu)

    def sleep(self, now: int, vcpu: int) -> None:
        self.queue.remove(vcpu)

    def yield_now(self, now: int, vcpu: int) -> None:
        self.yielding.add(vcpu)

    def schedule(self, now: int, pcpu: int) -> tuple[int, int] | None:
        current = self.machine.current(pcpu)
        if current is not None:
            yields = current in self.yielding
            self.yielding.discard(current)
            if self.machine.is_runnable(current):
                left = self.quantum - (now - self.began[current])
                if left > 0 and not yields:
                    return current, left
                self.queue.append(current)
        for vcpu in self.queue:
            if self.machine.can_run(vcpu, pcpu):
                self.queue.remove(vcpu)
                self.began[vcpu] = now
                return vcpu, self.quantum
        return None
