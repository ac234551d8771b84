import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Sends one record with a header. Arguments: servers, topic, key, value. Prints where the record
 * is.
 */
public class Produce {
  public static void main(String[] args) throws Exception {
    Map<String, Object> settings = Map.of("bootstrap.servers", args[0], "acks", "all");
    try (var producer =
        new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
      var record = new ProducerRecord<>(args[1], bytes(args[2]), bytes(args[3]));
      record.headers().add("trace", bytes("abc"));
      var sent = producer.send(record).get();
      System.out.printf("{\"partition\":%d,\"offset\":%d}%n", sent.partition(), sent.offset());
    }
  }

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }
}
