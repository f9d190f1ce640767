"""File, then environment, then flags; and every error names the setting and the rule."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from logbroker.config import Config, Durability, LimitsConfig, ListenConfig, LogConfig, load
from logbroker.errors import InvalidError

FILE = """
[listen]
grpc = "127.0.0.1:1"
stop_grace_ms = 1
[log]
durability = "written"
segment_bytes = 65536
"""


def write(tmp_path, text):
    file = tmp_path / "logbroker.toml"
    file.write_text(text, encoding="utf-8")
    return file


def refused(*args, **kwargs):
    with pytest.raises(InvalidError) as raised:
        load(*args, **kwargs)
    assert raised.value.reason == "INVALID_SETTING"
    return str(raised.value)


def test_nothing_given_is_the_defaults():
    assert load(environ={}) == Config()


def test_a_file_changes_what_it_names(tmp_path):
    config = load(write(tmp_path, FILE), environ={})
    assert config.listen == ListenConfig(grpc="127.0.0.1:1", stop_grace_ms=1)
    assert config.log == LogConfig(durability=Durability.WRITTEN, segment_bytes=65536)
    assert config.limits == LimitsConfig()


def test_the_environment_counts_more_than_the_file_and_flags_count_most(tmp_path):
    environ = {"LOGBROKER_LISTEN_GRPC": "127.0.0.1:2", "LOGBROKER_LISTEN_STOP_GRACE_MS": "2"}
    flags = {"listen": {"grpc": "127.0.0.1:3", "stop_grace_ms": None}}
    config = load(write(tmp_path, FILE), environ=environ, flags=flags)
    assert (config.listen.grpc, config.listen.stop_grace_ms) == ("127.0.0.1:3", 2)


def test_the_environment_alone_is_enough():
    environ = {
        "LOGBROKER_STORAGE_DATA_DIR": "/data",
        "LOGBROKER_LISTEN_INSECURE": "yes",
        "LOGBROKER_LOG_DURABILITY": "written",
        "LOGBROKER_UNRELATED": "1",
    }
    config = load(environ=environ)
    assert config.storage.data_dir == Path("/data")
    assert config.listen.insecure is True
    assert config.log.durability is Durability.WRITTEN


@pytest.mark.parametrize(
    "text, setting, rule",
    [
        ("[listen]\ngrcp = 1", "listen", "'grcp' is not a setting of [listen]; they are grpc"),
        ("[lisen]\ngrpc = 1", "logbroker.toml", "'lisen' is not a section; they are listen"),
        ("listen = 3", "listen", "must be a table"),
        ("[listen", "config file", "is not TOML"),
        ("[listen]\ngrpc = 9470", "listen.grpc", "must be text"),
        ("[listen]\ngrpc = 'localhost'", "listen.grpc", "must be host:port"),
        ("[listen]\ngrpc = ':80'", "listen.grpc", "must be host:port"),
        ("[listen]\ngrpc = 'a:65536'", "listen.grpc", "must be host:port"),
        ("[listen]\ninsecure = 'perhaps'", "listen.insecure", "must be true or false"),
        ("[listen]\nkeepalive_ms = 999", "listen.keepalive_ms", "must be 1000 to 3600000"),
        ("[storage]\nsync_threads = 0", "storage.sync_threads", "must be 1 to 256"),
        ("[storage]\nsync_threads = 1.5", "storage.sync_threads", "must be a whole number"),
        ("[storage]\nsync_threads = true", "storage.sync_threads", "must be a whole number"),
        ("[storage]\ndata_dir = 3", "storage.data_dir", "must be a path"),
        ("[log]\ndurability = 'sure'", "log.durability", "must be synced or written"),
        ("[log]\nsegment_bytes = 4095", "log.segment_bytes", "must be 4096 to 2147483648"),
        ("[log]\nretention_ms = -1", "log.retention_ms", "must be 0 to"),
        ("[limits]\nrecord_bytes = 0", "limits.record_bytes", "must be 1 to"),
        (
            "[limits]\nbatch_bytes = 1048576",
            "limits.batch_bytes",
            "must be at least record_bytes + 65536 = 1114112",
        ),
        ("[limits]\nbatch_bytes = 67108865", "limits.batch_bytes", "must be 1 to 67108864"),
        ("[limits]\nconnection_bytes = 1", "limits.connection_bytes", "must be 2097152 to"),
        ("[limits]\nin_flight_bytes = 1", "limits.in_flight_bytes", "must be 16777216 to"),
    ],
)
def test_an_error_names_the_setting_and_the_rule(tmp_path, text, setting, rule):
    message = refused(write(tmp_path, text), environ={})
    assert setting in message
    assert rule in message


def test_a_bad_variable_is_named_as_the_variable():
    message = refused(environ={"LOGBROKER_LOG_SEGMENT_MS": "soon"})
    assert message == "LOGBROKER_LOG_SEGMENT_MS: 'soon' must be a whole number"


def test_a_bad_flag_is_named_as_its_setting():
    message = refused(environ={}, flags={"log": {"segment_ms": "soon"}})
    assert message == "log.segment_ms: 'soon' must be a whole number"


def test_a_file_that_is_not_there_or_not_text_is_an_error(tmp_path):
    assert "cannot be read: No such file" in refused(tmp_path / "none.toml", environ={})
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    assert "is not TOML" in refused(tmp_path / "bytes.toml", environ={})


def test_every_limit_can_be_raised_to_its_ceiling(tmp_path):
    text = "[limits]\nrecord_bytes = 67043328\nbatch_bytes = 67108864\n"
    text += "connection_bytes = 67108864\nin_flight_bytes = 134217728\n"
    assert load(write(tmp_path, text), environ={}).limits.batch_bytes == 64 << 20


def test_every_setting_has_a_variable_and_says_what_it_is():
    source = (Path(__file__).parent.parent / "logbroker/config.py").read_text(encoding="utf-8")
    for section in fields(Config):
        for setting in fields(section.default_factory):
            assert re.search(rf'    {setting.name}: .+\n    """', source), setting.name
