package kconform;

import java.lang.reflect.Type;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.Function;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Time;

/** Kafka's CoordinatorLoaderImpl over a broker's logs; it reads at once, in the caller's thread. */
final class CoordinatorLoaders {
  private static final int LOAD_BUFFER = 1 << 20;
  private static final long COMMIT_INTERVAL = 1000; // CoordinatorLoaderImpl.DEFAULT_...

  private CoordinatorLoaders() {}

  static Object over(BrokerProcess process, Object deserializer) {
    Object loader = Kafka.wire(Kafka.type("CoordinatorLoaderImpl"), part(process, deserializer));
    Kafka.set(loader, "scheduler", new ImmediateKafkaScheduler());
    return loader;
  }

  private static Function<Type, Object> part(BrokerProcess process, Object deserializer) {
    List<Function<TopicPartition, Object>> lookups = new ArrayList<>();
    Object replicas = process.replicaManager;
    lookups.add(partition -> Optional.ofNullable(Kafka.orNull(Kafka.call(replicas, "getLog", partition))));
    lookups.add(
        partition -> Optional.ofNullable(Kafka.orNull(Kafka.call(replicas, "getLogEndOffset", partition))));
    return type -> {
      Class<?> raw = Kafka.raw(type);
      if (raw == Function.class) {
        return lookups.remove(0);
      }
      if (raw == int.class) {
        return LOAD_BUFFER;
      }
      if (raw == long.class) {
        return COMMIT_INTERVAL;
      }
      if (raw == Time.class) {
        return process.clock;
      }
      return raw.isInstance(replicas) ? replicas : deserializer;
    };
  }
}
