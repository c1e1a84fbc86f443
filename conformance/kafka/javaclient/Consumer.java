package kconform.client;

import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Kafka's own consumer of the classic protocol: arguments topic, then key=value settings. */
public final class Consumer implements ConsumerRebalanceListener {
    private Consumer() {}

    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        for (int i = 1; i < arguments.length; i++) {
            String[] pair = arguments[i].split("=", 2);
            settings.put(pair[0], pair[1]);
        }
        CountDownLatch closed = new CountDownLatch(1);
        KafkaConsumer<byte[], byte[]> consumer =
            new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            consumer.wakeup();
            try {
                closed.await();
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
            }
        }));
        tell("started", "");
        consumer.subscribe(List.of(arguments[0]), new Consumer());
        try {
            while (true) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100))) {
                    tell("read", ",\"partition\":" + record.partition() + ",\"offset\":" + record.offset());
                }
            }
        } catch (WakeupException ended) {
            consumer.close();
            tell("closed", "");
        } finally {
            closed.countDown();
        }
    }

    private static synchronized void tell(String event, String further) {
        System.out.println("{\"time\":" + System.nanoTime() + ",\"event\":\"" + event + "\"" + further + "}");
        System.out.flush();
    }

    private static void partitions(String event, Collection<TopicPartition> given) {
        tell(event, given.stream().map(one -> "[\"" + one.topic() + "\"," + one.partition() + "]")
            .collect(Collectors.joining(",", ",\"partitions\":[", "]")));
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> given) {
        partitions("assigned", given);
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> given) {
        partitions("revoked", given);
    }

    @Override
    public void onPartitionsLost(Collection<TopicPartition> given) {
        partitions("lost", given);
    }
}
