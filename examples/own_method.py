"""A combination with a name of its own: recbole-hns --import=own_method --sampler=long_tail_dns …"""

from own_loss import SquaredHinge
from own_pool import LongTail

import recbole_hns as hns

hns.register(
    hns.Method(LongTail(power=0.5), hns.rules.DNS(M=5), SquaredHinge(), N=100), name="long_tail_dns"
)
