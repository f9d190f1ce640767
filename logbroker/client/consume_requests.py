"""What a member tells the broker, as messages. Pure."""

from logbroker.client.consumer_settings import ConsumerSettings
from logbroker.group.settings import GroupSettings
from logbroker.v1 import consume_service_pb2 as pb
from logbroker.v1 import group_pb2
from logbroker.wire.convert_groups import group_settings_to_proto


def open_request(
    settings: ConsumerSettings, limits: tuple[int, int], max_response_bytes: int
) -> pb.ConsumeRequest:
    """Returns the first request: which group, which topics, and how."""
    given = group_pb2.GroupSettings()
    if settings.settings is not None:
        given = group_settings_to_proto(settings.settings)
    if settings.order is not None:
        given.order = group_settings_to_proto(GroupSettings(order=settings.order)).order
    opening = pb.OpenConsume(
        group=settings.group,
        topics=settings.topics,
        settings=given,
        client_id=settings.client_id,
        instance_id=settings.instance_id,
        limits=_flow_limits(limits),
        max_response_bytes=max_response_bytes,
    )
    return pb.ConsumeRequest(open=opening)


def limits_request(limits: tuple[int, int]) -> pb.ConsumeRequest:
    """Returns what changes how many records and bytes may be outstanding."""
    return pb.ConsumeRequest(limits=_flow_limits(limits))


def _flow_limits(limits: tuple[int, int]) -> pb.FlowLimits:
    records, size_bytes = limits
    return pb.FlowLimits(max_outstanding_records=records, max_outstanding_bytes=size_bytes)
