"""Assignments: balanced, and no partition moves without need."""

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from logbroker.group.assignment import Member, TopicPartition, assign

T = frozenset({"t"})


def loads(assignment):
    return sorted(len(mine) for mine in assignment.values())


def moved(before, after):
    return sum(len(set(mine) - set(after.get(name, ()))) for name, mine in before.items())


def fewest_moves(before, names, count):
    """Tries every balanced assignment. `before`: owner by partition, None for none."""
    best = count
    for owners in product(names, repeat=count):
        sizes = [owners.count(name) for name in names]
        if max(sizes) - min(sizes) <= 1:
            lost = sum(old in names and old != new for old, new in zip(before, owners, strict=True))
            best = min(best, lost)
    return best


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(["a", "b", "c", "gone", None]), min_size=1, max_size=6), st.data())
def test_of_all_balanced_assignments_it_moves_the_fewest(before, data):
    names = data.draw(st.lists(st.sampled_from("abcd"), min_size=1, max_size=3, unique=True))
    owned = {}
    for partition, owner in enumerate(before):
        owned.setdefault(owner, []).append(TopicPartition("t", partition))
    owned.pop(None, None)
    after = assign([Member(name, T) for name in names], {"t": len(before)}, owned)
    assert sorted(one for mine in after.values() for one in mine) == [
        TopicPartition("t", partition) for partition in range(len(before))
    ]
    assert loads(after)[-1] - loads(after)[0] <= 1
    here = {name: mine for name, mine in owned.items() if name in names}
    assert moved(here, after) == fewest_moves(before, names, len(before))


@given(
    st.dictionaries(st.sampled_from("abcde"), st.frozensets(st.sampled_from("xyz"), min_size=1)),
    st.dictionaries(st.sampled_from("xyz"), st.integers(1, 5)),
)
def test_with_different_wishes_each_partition_goes_to_one_who_wants_it(wishes, partitions):
    members = [Member(name, topics) for name, topics in wishes.items()]
    after = assign(members, partitions, {})
    for name, mine in after.items():
        assert {one.topic_id for one in mine} <= wishes[name]
    wanted = {topic for topics in wishes.values() for topic in topics}
    owned = [one for mine in after.values() for one in mine]
    assert len(owned) == len(set(owned))
    assert len(owned) == sum(count for topic, count in partitions.items() if topic in wanted)
    assert assign(members, partitions, after) == after, "at rest"
    for giver, taker in product(after, repeat=2):
        can_give = any(one.topic_id in wishes[taker] for one in after[giver])
        assert not can_give or len(after[giver]) - len(after[taker]) < 2


def test_a_partition_passes_through_a_third_member_where_it_must():
    members = [
        Member("a", frozenset("xy")),
        Member("b", frozenset("yz")),
        Member("c", frozenset("z")),
    ]
    before = {"a": [TopicPartition("y", at) for at in range(4)]}
    before["b"] = [TopicPartition("z", at) for at in range(2)]
    assert loads(assign(members, {"x": 0, "y": 4, "z": 2}, before)) == [2, 2, 2]


def test_one_who_comes_back_under_its_instance_id_moves_nothing():
    members = [Member(name, T) for name in "abc"]
    before = assign(members, {"t": 10}, {})
    assert assign(members, {"t": 10}, before) == before


def test_a_join_takes_only_what_the_new_member_gets():
    before = assign([Member(name, T) for name in "ab"], {"t": 9}, {})
    after = assign([Member(name, T) for name in "abc"], {"t": 9}, before)
    assert len(after["c"]) == 3
    taken = [one for name in "ab" for one in before[name] if one not in after[name]]
    assert sorted(taken) == list(after["c"])


@given(st.data())
def test_nobody_owns_where_it_is_late_while_another_is_not_and_nothing_is_left_over(data):
    names = data.draw(st.lists(st.sampled_from("abcd"), min_size=1, unique=True))
    everything = [TopicPartition("t", at) for at in range(data.draw(st.integers(1, 8)))]
    before = assign([Member(name, T) for name in names], {"t": len(everything)}, {})
    late = {name: data.draw(st.frozensets(st.sampled_from(everything))) for name in names}
    members = [Member(name, T, late[name]) for name in names]
    after = assign(members, {"t": len(everything)}, before)
    assert sorted(one for mine in after.values() for one in mine) == everything
    for name, mine in after.items():
        for one in mine:
            assert one not in late[name] or all(one in places for places in late.values())
    assert assign(members, {"t": len(everything)}, after) == after, "at rest"


def test_a_partition_goes_from_one_who_is_late_in_it_and_the_others_stay():
    before = assign([Member(name, T) for name in "ab"], {"t": 4}, {})
    [first, _] = before["a"]
    after = assign([Member("a", T, {first}), Member("b", T)], {"t": 4}, before)
    assert first in after["b"]
    assert moved(before, after) <= 2
    alone = assign([Member("a", T, {first})], {"t": 4}, after)
    assert len(alone["a"]) == 4
    both = assign([Member("a", T, {first}), Member("b", T, {first})], {"t": 4}, before)
    assert both == before


def test_one_who_is_late_everywhere_keeps_nothing_while_others_are_there():
    before = assign([Member(name, T) for name in "abc"], {"t": 6}, {})
    everything = [TopicPartition("t", at) for at in range(6)]
    after = assign([Member("a", T, everything), *(Member(n, T) for n in "bc")], {"t": 6}, before)
    assert (after["a"], len(after["b"]), len(after["c"])) == ((), 3, 3)


def test_many_partitions_are_assigned_in_no_time():
    members = [Member(f"m{at}", T) for at in range(20)]
    before = assign(members, {"t": 2_000}, {})
    assert loads(assign([*members, Member("new", T)], {"t": 2_000}, before))[0] == 95
