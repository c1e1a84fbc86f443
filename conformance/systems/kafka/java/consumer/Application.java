package kconform;

import java.util.Arrays;
import java.util.List;
import java.util.concurrent.locks.ReentrantLock;
import org.apache.kafka.common.KafkaException;

/**
 * The thread of a consumer's application. A call that waits for the network stands still in
 * KafkaClient.poll, until a command lets it go on.
 *
 * <p>ConsumerNetworkClient holds its lock while it polls. Another thread that needs the lock wakes
 * the poll up (KafkaClient.wakeup), and gets it. So an application that stands still has let go of
 * the lock. It keeps the coordinator's monitor where Kafka holds it: who then needs the monitor
 * waits, as in Kafka.
 */
final class Application {
  /** The system is reset: the call that stands still is over. */
  private static final class Ended extends Error {
    private static final long serialVersionUID = 1L;

    Ended() {
      super("the application has ended", null, false, false);
    }
  }

  private static final String NOTHING = "NONE";

  private ReentrantLock lock;
  private Stepping thread;
  private boolean isEnding;
  private boolean hasWaited;
  private volatile List<String> stack = List.of();
  /** How the last call ended: NONE, or the exception's class. */
  private volatile String result = "none";

  /** ConsumerNetworkClient's lock. */
  void use(ReentrantLock networkLock) {
    lock = networkLock;
  }

  String result() {
    return result;
  }

  /** A call that waits for nothing. It says how it ended only if it raises. */
  void callAtOnce(Runnable body) {
    try {
      body.run();
    } catch (KafkaException error) {
      result = nameOf(error);
    }
  }

  /** A call that may stand still. */
  void call(Runnable body) {
    if (standsStill()) {
      throw new Broker.Refused("the application stands still in another call");
    }
    hasWaited = false;
    thread = new Stepping(() -> result = resultOf(body));
    goOn();
  }

  private static String resultOf(Runnable body) {
    try {
      body.run();
      return NOTHING;
    } catch (KafkaException error) {
      return nameOf(error);
    } catch (Ended ended) {
      return NOTHING;
    }
  }

  /** An exception's class; null is none. */
  static String nameOf(Object error) {
    return error == null ? NOTHING : error.getClass().getSimpleName();
  }

  /** Something has come: a call that stands still looks at it. */
  void goOn() {
    try {
      if (thread != null && thread.next(this) == null) {
        thread = null;
        stack = List.of();
      }
    } catch (InterruptedException stopped) {
      Thread.currentThread().interrupt();
    }
  }

  boolean standsStill() {
    return thread != null;
  }

  /** Whether the call stands still in a method of that name. */
  boolean standsIn(String method) {
    return stack.contains(method);
  }

  /**
   * The application waits for the network.
   *
   * <p>A poll to which nothing comes returns at its time-out, and ConsumerNetworkClient looks whether
   * the application was woken up. Then it polls again: there the application stands still.
   */
  void standStill() {
    if (thread == null || !thread.isRunning()) {
      throw new IllegalStateException("a step that waits for nothing waits for the network");
    }
    if (isEnding) {
      throw new Ended();
    }
    if (!hasWaited) {
      hasWaited = true;
      return;
    }
    hasWaited = false;
    stack =
        Arrays.stream(Thread.currentThread().getStackTrace())
            .map(StackTraceElement::getMethodName)
            .toList();
    lock.unlock();
    try {
      thread.ask(this);
    } catch (InterruptedException stopped) {
      Thread.currentThread().interrupt();
    } finally {
      lock.lock();
    }
    if (isEnding) {
      throw new Ended();
    }
  }

  /** The system is reset. What the end of a call does to its consumer is of no use. */
  void end() {
    isEnding = true;
    while (standsStill()) {
      goOn();
    }
  }
}
