"""Mail in fair order: tenants take turns, however much of one's mail lies before another's.

While there is little, it is read as it lies. Behind a full page it is first seen whose mail waits:
ids alone, so that the whole mailbox can be looked through and eight bytes of each row be kept.
"""

from collections import OrderedDict, deque
from collections.abc import Sequence
from typing import Final

from pawlflow.model.ids import Tenant
from pawlflow.store.mailbox import Mail, Mailbox

LINES_PAGE: Final = 10_000  # ids looked up at a time: some ten milliseconds
LINES_MAX: Final = 1_000_000  # ids kept; what lies behind them waits until there are fewer


class FairMail:
    """One reader of a mailbox, and what it knows to wait there."""

    def __init__(self, mailbox: Mailbox) -> None:
        self.mailbox = mailbox
        self.lines: OrderedDict[Tenant, deque[int]] = OrderedDict()  # whose turn it is comes first
        self.count = 0  # of ids in them
        self.seen = 0  # ids up to here were looked at
        self.given = 0  # the highest that was given, as the caller knows it too
        self.behind = False  # there may be more than was looked at

    def read(self, shards: Sequence[int], after: int, limit: int) -> list[Mail]:
        """The next mail; fewer than the limit only if there is no more.

        `after` is the highest id that the caller was given. A caller who says another one has
        begun anew, say with other shards: then all above it is given again.
        """
        if after != self.given:
            self.lines, self.count, self.behind = OrderedDict(), 0, False
            self.seen = after
        found: list[Mail] = []
        if not self.lines and not self.behind:
            found = self.mailbox.mail(shards, self.seen, limit)
            self.behind = len(found) >= limit
            self.seen = max([self.seen, *(mail.id for mail in found)])
        else:
            self.look(shards)
            while self.lines and len(found) < limit:
                found += self.take(shards, limit - len(found))
                if not self.lines and self.behind:
                    self.look(shards)
        self.given = max([after, *(mail.id for mail in found)])
        return found

    def look(self, shards: Sequence[int]) -> None:
        """See whose mail waits, as far as there is room to remember it."""
        if self.count >= LINES_MAX:
            return
        page = self.mailbox.mail_lines(shards, self.seen, LINES_PAGE)
        self.behind = len(page) >= LINES_PAGE
        for mail, tenant in page:
            self.lines.setdefault(tenant, deque()).append(mail)
            self.seen = max(self.seen, mail)
        self.count += len(page)

    def take(self, shards: Sequence[int], most: int) -> list[Mail]:
        """The next mail of each tenant in turn, the oldest of each first."""
        ids: list[int] = []
        while self.lines and len(ids) < most:
            tenant, line = self.lines.popitem(last=False)
            ids.append(line.popleft())
            if line:
                self.lines[tenant] = line
        self.count -= len(ids)
        found = {mail.id: mail for mail in self.mailbox.mail_by_id(shards, ids)}
        return [found[mail] for mail in ids if mail in found]
