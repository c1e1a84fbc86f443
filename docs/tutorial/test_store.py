from conformance.plugin import conformance_tests

TestStore = conformance_tests("models/store.toml")
