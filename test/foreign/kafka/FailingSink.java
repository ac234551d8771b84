import java.net.SocketTimeoutException;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.sink.SinkConnector;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.sink.SinkTask;

/** A sink of Kafka Connect that cannot write any record, and reports each one as errant. */
public class FailingSink extends SinkConnector {
  @Override
  public void start(Map<String, String> settings) {}

  @Override
  public Class<? extends Task> taskClass() {
    return FailingTask.class;
  }

  @Override
  public List<Map<String, String>> taskConfigs(int max) {
    return Collections.singletonList(Map.of());
  }

  @Override
  public void stop() {}

  @Override
  public ConfigDef config() {
    return new ConfigDef();
  }

  @Override
  public String version() {
    return "1";
  }

  public static class FailingTask extends SinkTask {
    @Override
    public void start(Map<String, String> settings) {}

    @Override
    public void put(Collection<SinkRecord> records) {
      for (SinkRecord record : records)
        context
            .errantRecordReporter()
            .report(
                record,
                new ConnectException("cannot write", new SocketTimeoutException("Read timed out")));
    }

    @Override
    public void stop() {}

    @Override
    public String version() {
      return "1";
    }
  }
}
