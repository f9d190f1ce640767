"""What `import logbroker` offers is what it lists, and each name is explained."""

import inspect

import logbroker


def test_the_public_names_are_the_listed_ones_and_explained():
    named = {name: value for name, value in vars(logbroker).items() if not name.startswith("_")}
    public = {name for name, value in named.items() if not inspect.ismodule(value)}
    assert public == set(logbroker.__all__)
    assert [name for name in public if not inspect.getdoc(named[name])] == []
