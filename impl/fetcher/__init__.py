"""The follower side of replication: fetcher threads, their leader end points and their manager."""
