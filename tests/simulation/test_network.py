"""Links keep the order of what they carry, and a cut one carries nothing."""

import asyncio
from collections import Counter
from random import Random

from .loop import Process, SimulatedLoop
from .network import Link, Network


class Side:
    """One end, which writes down what it hears."""

    def __init__(self, name):
        self.process = Process(name)
        self.heard = []

    def link_lost(self, link):
        self.heard.append("lost")


def run(test, seed=0):
    """Runs the test with a network, a link, and its two ends."""

    async def work():
        network = Network(random, Counter())
        client, server = Side("client"), Side("server")
        await test(network, Link(network, client, server), client, server)
        return client.heard, server.heard

    random = Random(seed)
    return SimulatedLoop(random).run(work())


def test_messages_arrive_in_their_order():
    async def test(network, link, client, server):
        network.late_chance = 0.5
        for number in range(50):
            link.send(server, server.heard.append, number)
        await asyncio.sleep(60)

    for seed in range(10):
        assert run(test, seed) == ([], list(range(50)))


def test_of_a_request_and_its_answer_either_may_be_lost():
    async def test(network, link, client, server):
        def answer():
            server.heard.append("request")
            link.send(client, client.heard.append, "answer")

        link.send(server, answer)
        await asyncio.sleep(network.random.uniform(0, 0.004))
        network.cut(link, is_loud=True)
        await asyncio.sleep(60)

    seen = {tuple(map(tuple, run(test, seed))) for seed in range(300)}
    assert seen == {
        (("lost",), ("lost",)),
        (("lost",), ("request", "lost")),
        (("answer", "lost"), ("request", "lost")),
    }


def test_a_silent_link_is_noticed_by_a_probe_alone():
    async def test(network, link, client, server):
        network.cut(link, is_loud=False)
        link.send(server, server.heard.append, "unheard")
        await asyncio.sleep(1)
        assert client.heard == server.heard == []
        await asyncio.sleep(60)

    assert run(test) == (["lost"], ["lost"])


def test_a_link_that_is_closed_in_order_loses_nothing_of_what_was_sent():
    async def test(network, link, client, server):
        for number in range(5):
            link.send(client, client.heard.append, number)
        link.close(server)
        link.send(server, server.heard.append, "too late")
        await asyncio.sleep(60)

    assert run(test) == ([0, 1, 2, 3, 4, "lost"], [])


def test_a_killed_process_hears_nothing_and_its_peer_that_it_is_gone():
    async def test(network, link, client, server):
        link.send(server, server.heard.append, "unheard")
        server.process.kill()
        network.process_killed(server.process)
        await asyncio.sleep(60)

    assert run(test) == (["lost"], [])
