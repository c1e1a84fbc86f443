package kconform;

/** What reads a log, and has in memory what it has read. */
interface LogReader {
  void read(Loads.Entry entry);

  /** Its state as text: equal texts are equal states. */
  String text();
}
