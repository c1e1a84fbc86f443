package kconform;

import java.util.concurrent.SynchronousQueue;

/**
 * A thread that runs one step of Kafka's and can stand still in its middle.
 *
 * <p>It and whoever steps it take turns: one of the two always waits.
 */
final class Stepping {
  private static final Object ENDED = new Object();
  private final SynchronousQueue<Object> questions = new SynchronousQueue<>();
  private final SynchronousQueue<Object> answers = new SynchronousQueue<>();
  private final Thread thread;
  private volatile Throwable failure;
  private boolean started;

  Stepping(Runnable step) {
    thread =
        new Thread(
            () -> {
              try {
                step.run();
              } catch (Throwable error) {
                failure = error;
              }
              end();
            });
    thread.setDaemon(true);
  }

  private void end() {
    try {
      questions.put(ENDED);
    } catch (InterruptedException stopped) {
      Thread.currentThread().interrupt();
    }
  }

  /** Begins the step, or goes on with this answer; what it asks next, or null at its end. */
  Object next(Object answer) throws InterruptedException {
    if (started) {
      answers.put(answer);
    } else {
      started = true;
      thread.start();
    }
    Object question = questions.take();
    if (question != ENDED) {
      return question;
    }
    if (failure != null) {
      throw Kafka.rethrow(failure);
    }
    return null;
  }

  /** Whether the caller is the step itself. */
  boolean isRunning() {
    return Thread.currentThread() == thread;
  }

  /** Stands still until the answer is given. */
  Object ask(Object question) throws InterruptedException {
    questions.put(question);
    return answers.take();
  }
}
