"""The catalog: what is decided, and that replay makes the same of it."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from logbroker.config import Durability, LogConfig
from logbroker.errors import (
    AlreadyExistsError,
    ExhaustedError,
    InvalidError,
    LogbrokerError,
    NotFoundError,
    PreconditionError,
    UnavailableError,
)
from logbroker.record.partition_id import PartitionId
from logbroker.topic import events
from logbroker.topic.catalog import TopicCatalog
from logbroker.topic.events import TopicCreated, TopicErased, TopicGrown, TopicUpdated
from logbroker.topic.topic import TopicSettings

NONE, DEFAULTS = TopicSettings(), LogConfig()


def create(catalog, name="a", count=1, topic_settings=NONE, topic_id="id", defaults=DEFAULTS):
    decided = catalog.decide_create(
        name, count, topic_settings, defaults=defaults, topic_id=topic_id, now_ms=5
    )
    apply(catalog, decided)
    return catalog.get(name)


def apply(catalog, decided):
    for event in decided:
        catalog.apply(event)


def state_of(catalog):
    return catalog.topics(), {topic.topic_id: topic for topic in catalog.deleted()}


def replayed(some_events):
    catalog = TopicCatalog()
    catalog.restore([events.decode(events.encode(event)) for event in some_events])
    return catalog


def test_a_topic_is_created_with_the_defaults_and_what_differs_from_them():
    defaults = LogConfig(retention_ms=1, segment_ms=2)
    topic = create(
        TopicCatalog(), count=3, topic_settings=TopicSettings(segment_ms=9), defaults=defaults
    )
    assert topic.settings == LogConfig(retention_ms=1, segment_ms=9)
    assert (topic.topic, topic.topic_id, topic.created_ms) == ("a", "id", 5)
    assert topic.partitions() == [PartitionId("a", "id", number) for number in range(3)]


def test_no_count_means_one_partition():
    assert create(TopicCatalog(), count=0).partition_count == 1


@pytest.mark.parametrize("count", [-1, 10_001, 2**31 - 1])
def test_a_count_out_of_range_is_refused(count):
    with pytest.raises(InvalidError, match="partition_count must be 1 to 10000"):
        create(TopicCatalog(), count=count)


@pytest.mark.parametrize("name", ["", "__topics", "../x"])
def test_a_bad_name_is_refused_by_create_and_by_get(name):
    for call in (lambda: create(TopicCatalog(), name), lambda: TopicCatalog().get(name)):
        with pytest.raises(InvalidError) as raised:
            call()
        assert raised.value.reason == "INVALID_NAME"


def test_settings_out_of_range_are_refused():
    with pytest.raises(InvalidError, match=r"log\.segment_bytes"):
        create(TopicCatalog(), topic_settings=TopicSettings(segment_bytes=1))


def test_a_name_that_is_taken_is_refused():
    catalog = TopicCatalog()
    create(catalog)
    with pytest.raises(AlreadyExistsError):
        create(catalog, topic_id="other")


def test_names_that_differ_in_case_or_in_a_dot_are_different_topics():
    catalog = TopicCatalog()
    for name in ("T", "t", "a.b", "a_b"):
        create(catalog, name, topic_id=name)
    assert [topic.topic for topic in catalog.topics()] == ["T", "a.b", "a_b", "t"]


def test_an_older_incarnation_is_refused_with_both_ids():
    catalog = TopicCatalog()
    create(catalog, topic_id="new")
    with pytest.raises(PreconditionError) as raised:
        catalog.get("a", "old")
    assert raised.value.reason == "TOPIC_RECREATED"
    assert raised.value.details["topic_id"] == "old"
    assert raised.value.details["current_topic_id"] == "new"


@pytest.mark.parametrize("partition", [-1, 2, 2**31 - 1])
def test_a_partition_there_is_not_is_not_found(partition):
    catalog = TopicCatalog()
    create(catalog, count=2)
    with pytest.raises(NotFoundError) as raised:
        catalog.partition("a", "", partition)
    assert raised.value.reason == "PARTITION_NOT_FOUND"


def test_all_partitions_together_are_limited_and_nothing_is_changed_beyond():
    catalog = TopicCatalog()
    create(catalog, "a", 10_000, topic_id="1")
    create(catalog, "b", 9_999, topic_id="2")
    with pytest.raises(ExhaustedError):
        create(catalog, "c", 2, topic_id="3")
    with pytest.raises(ExhaustedError):
        apply(catalog, catalog.decide_create(
            "c", 2, NONE, defaults=LogConfig(), topic_id="3", now_ms=0
        ))  # fmt: skip
    create(catalog, "c", 1, topic_id="3")
    with pytest.raises(ExhaustedError):
        catalog.decide_grow("c", "", 2)


def test_an_update_changes_what_is_set_and_nothing_where_nothing_is():
    catalog = TopicCatalog()
    create(catalog, topic_settings=TopicSettings(retention_ms=7))
    apply(catalog, catalog.decide_update("a", "", TopicSettings(durability=Durability.WRITTEN)))
    assert catalog.get("a").settings == LogConfig(retention_ms=7, durability=Durability.WRITTEN)
    assert catalog.decide_update("a", "", TopicSettings(retention_ms=7)) == []


@pytest.mark.parametrize("count", [0, -1, 1, 2, 10_001])
def test_a_topic_grows_and_never_shrinks(count):
    catalog = TopicCatalog()
    create(catalog, count=2)
    with pytest.raises(InvalidError):
        catalog.decide_grow("a", "", count)
    apply(catalog, catalog.decide_grow("a", "id", 3))
    assert catalog.get("a").partition_count == 3


def test_a_deleted_topic_keeps_its_name_until_it_is_erased():
    catalog = TopicCatalog()
    topic = create(catalog)
    apply(catalog, catalog.decide_delete("a", ""))
    assert catalog.deleted() == [topic]
    with pytest.raises(NotFoundError):
        catalog.get("a")
    with pytest.raises(UnavailableError, match="still being removed"):
        create(catalog, topic_id="new")
    catalog.apply(TopicErased("id"))
    assert create(catalog, topic_id="new").topic_id == "new"


def test_files_of_a_topic_nobody_knows_make_its_name_damaged():
    catalog = TopicCatalog()
    create(catalog, "known")
    catalog.find_damaged(
        [
            PartitionId("known", "id", 0),
            PartitionId("lost", "lost-id", 0),
            PartitionId("__topics", "__topics", 0),
        ]
    )
    assert catalog.damaged_topics == {"lost"}
    for call in (lambda: catalog.get("lost"), lambda: create(catalog, "lost", topic_id="new")):
        with pytest.raises(UnavailableError) as raised:
            call()
        assert raised.value.reason == "TOPIC_DAMAGED"
    catalog.get("known")


def test_events_about_topics_that_damage_took_are_passed_over():
    catalog = replayed([TopicGrown("lost", 3), TopicUpdated("lost", LogConfig()), TopicErased("x")])
    assert state_of(catalog) == ([], {})


def test_a_creation_whose_predecessors_deletion_is_lost_takes_the_name():
    first, second = TopicCatalog(), TopicCatalog()
    old, new = create(first, topic_id="old"), create(second, topic_id="new")
    catalog = replayed([TopicCreated(old), TopicCreated(new), TopicGrown("old", 7)])
    assert catalog.topics() == [new]
    catalog.find_damaged([PartitionId("a", "old", 0)])
    assert catalog.damaged_topics == {"a"}


NAMES = st.sampled_from(["a", "b", "c", "__x", ""])
COUNTS = st.integers(-1, 6) | st.just(10_001)
IDS = st.sampled_from(["", "1", "2", "3"])
SETTINGS = st.builds(
    TopicSettings,
    durability=st.none() | st.sampled_from(Durability),
    retention_ms=st.none() | st.integers(-1, 3),
    segment_bytes=st.none() | st.sampled_from([1, 4096, 8192]),
)


class CatalogMachine(RuleBasedStateMachine):
    """Whatever is decided: applied live, replayed, or replayed from a snapshot, it is the same."""

    def __init__(self):
        super().__init__()
        self.catalog = TopicCatalog()
        self.journal = []
        self.number = 0

    def take(self, decide):
        before = state_of(self.catalog)
        try:
            decided = decide()
        except LogbrokerError:
            decided = []
        assert state_of(self.catalog) == before, "deciding changes nothing"
        self.journal += decided
        apply(self.catalog, decided)

    @rule(name=NAMES, count=COUNTS, topic_settings=SETTINGS)
    def create(self, name, count, topic_settings):
        self.number += 1
        self.take(
            lambda: self.catalog.decide_create(
                name, count, topic_settings,
                defaults=LogConfig(), topic_id=str(self.number), now_ms=self.number,
            )
        )  # fmt: skip

    @rule(name=NAMES, topic_id=IDS, topic_settings=SETTINGS)
    def update(self, name, topic_id, topic_settings):
        self.take(lambda: self.catalog.decide_update(name, topic_id, topic_settings))

    @rule(name=NAMES, topic_id=IDS, count=COUNTS)
    def grow(self, name, topic_id, count):
        self.take(lambda: self.catalog.decide_grow(name, topic_id, count))

    @rule(name=NAMES, topic_id=IDS)
    def delete(self, name, topic_id):
        self.take(lambda: self.catalog.decide_delete(name, topic_id))

    @rule(data=st.data())
    def erase(self, data):
        if deleted := self.catalog.deleted():
            topic = data.draw(st.sampled_from(deleted))
            self.take(lambda: [TopicErased(topic.topic_id)])

    @rule()
    def snapshot(self):
        self.journal = self.catalog.snapshot()

    @invariant()
    def a_replay_makes_the_same(self):
        assert state_of(replayed(self.journal)) == state_of(self.catalog)
        assert state_of(replayed(self.catalog.snapshot())) == state_of(self.catalog)

    @invariant()
    def a_name_is_of_one_topic(self):
        names = [topic.topic for topic in self.catalog.topics() + self.catalog.deleted()]
        assert len(names) == len(set(names))


CatalogMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=20, deadline=None)
TestCatalogMachine = pytest.mark.slow(CatalogMachine.TestCase)
