"""The controller of ZooKeeper mode: state changes, and the requests that tell brokers of them."""
