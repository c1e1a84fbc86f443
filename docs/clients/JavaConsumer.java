import java.io.FileWriter;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Properties;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Kafka's own consumer for `kconform client`: BOOTSTRAP TOPIC GROUP [INSTANCE]. */
public final class JavaConsumer {
    private static void tell(String event, Collection<TopicPartition> partitions) {
        String given = partitions.stream()
            .map(one -> "[\"" + one.topic() + "\", " + one.partition() + "]")
            .collect(Collectors.joining(", "));
        try (FileWriter callbacks = new FileWriter(System.getenv("KCONFORM_CALLBACKS"), true)) {
            callbacks.write("{\"event\": \"" + event + "\", \"partitions\": [" + given + "]}\n");
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    public static void main(String[] args) throws InterruptedException {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[0]);
        settings.put("group.id", args[2]);
        if (args.length > 3 && !args[3].isEmpty()) {
            settings.put("group.instance.id", args[3]);
        }
        settings.put("session.timeout.ms", "6000");
        settings.put("heartbeat.interval.ms", "250");
        settings.put("auto.commit.interval.ms", "300");
        settings.put("partition.assignment.strategy",
            "org.apache.kafka.clients.consumer.RangeAssignor");
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings, bytes, bytes);
        Thread main = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            consumer.wakeup();
            try {
                main.join();
            } catch (InterruptedException error) {
                Thread.currentThread().interrupt();
            }
        }));
        consumer.subscribe(List.of(args[1]), new ConsumerRebalanceListener() {
            @Override
            public void onPartitionsAssigned(Collection<TopicPartition> assigned) {
                tell("assigned", assigned);
            }

            @Override
            public void onPartitionsRevoked(Collection<TopicPartition> revoked) {
                tell("revoked", revoked);
            }

            @Override
            public void onPartitionsLost(Collection<TopicPartition> lost) {
                tell("lost", lost);
            }
        });
        try {
            while (true) {
                consumer.poll(Duration.ofMillis(50));
            }
        } catch (WakeupException ended) {
            // SIGTERM
        } finally {
            consumer.close();
        }
    }
}
