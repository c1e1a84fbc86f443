// Serves kfake, the Kafka broker in memory of franz-go, until its standard input ends.
//
//	go run . -port 9092 -topic topic=2 -initial-delay-ms 100 -min-session-ms 10
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	port := flag.Int("port", 9092, "where to listen on 127.0.0.1")
	delay := flag.Int("initial-delay-ms", 100, "group.initial.rebalance.delay.ms")
	session := flag.Int("min-session-ms", 10, "group.min.session.timeout.ms")
	slots := flag.Int("fetch-session-slots", 1000, "max.incremental.fetch.session.cache.slots")
	flag.Parse()
	cluster, err := kfake.NewCluster(
		kfake.NumBrokers(1),
		kfake.Ports(*port),
		kfake.SeedTopics(2, "topic"),
		kfake.BrokerConfigs(map[string]string{
			"group.initial.rebalance.delay.ms":          strconv.Itoa(*delay),
			"group.min.session.timeout.ms":              strconv.Itoa(*session),
			"max.incremental.fetch.session.cache.slots": strconv.Itoa(*slots),
			// Kafka's own default; kfake's is shorter than what the members ask for.
			"group.max.session.timeout.ms": "1800000",
		}),
	)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer cluster.Close()
	fmt.Println("listening on " + strings.Join(cluster.ListenAddrs(), ","))
	_, _ = io.Copy(io.Discard, os.Stdin)
}
