package kconform;

import com.yammer.metrics.core.MetricName;
import com.yammer.metrics.core.MetricsRegistry;
import java.util.List;
import org.apache.kafka.server.metrics.KafkaYammerMetrics;

/** Kafka's gauges live in a registry of the process and hold on to what they measure. */
final class YammerMetrics {
  private YammerMetrics() {}

  static void clear() {
    MetricsRegistry registry = KafkaYammerMetrics.defaultRegistry();
    for (MetricName name : List.copyOf(registry.allMetrics().keySet())) {
      registry.removeMetric(name);
    }
  }
}
