"""No more requests in a time than a service allows."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field


@dataclass(slots=True)
class Pace:
    """Lets requests go with at least `pause` seconds between them, in the order in which they come."""

    pause: float
    _next: float = field(default=0.0)

    async def turn(self) -> None:
        """Wait until the next request may be sent."""
        if not self.pause:
            return
        now = asyncio.get_running_loop().time()
        mine = max(now, self._next)
        self._next = mine + self.pause
        await asyncio.sleep(mine - now)
