import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.utils.Utils;

/**
 * Sends records with keys, and prints for each topic and key the hash and the partition that the
 * producer chose. Arguments: servers, number of keys, topics.
 */
public class Keys {
  public static void main(String[] args) throws Exception {
    int count = Integer.parseInt(args[1]);
    var random = new Random(20);
    List<byte[]> keys = new ArrayList<>();
    for (String text : new String[] {"", "a", "ab", "abc", "abcd", "key", "order-42", "Grüße", "日本"})
      keys.add(text.getBytes(StandardCharsets.UTF_8));
    while (keys.size() < count) {
      byte[] key = new byte[random.nextInt(40)];
      random.nextBytes(key);
      keys.add(key);
    }
    List<List<Future<RecordMetadata>>> sent = new ArrayList<>();
    try (var producer =
        new KafkaProducer<>(
            Map.<String, Object>of("bootstrap.servers", args[0], "linger.ms", 20),
            new ByteArraySerializer(),
            new ByteArraySerializer())) {
      for (byte[] key : keys) {
        List<Future<RecordMetadata>> ofKey = new ArrayList<>();
        for (int n = 2; n < args.length; n++)
          ofKey.add(producer.send(new ProducerRecord<>(args[n], key, key)));
        sent.add(ofKey);
      }
      producer.flush();
      for (int n = 0; n < keys.size(); n++) {
        List<Integer> partitions = new ArrayList<>();
        for (var one : sent.get(n)) partitions.add(one.get().partition());
        System.out.printf(
            "{\"key\":\"%s\",\"hash\":%d,\"partitions\":%s}%n",
            HexFormat.of().formatHex(keys.get(n)), Utils.murmur2(keys.get(n)), partitions);
      }
    }
  }
}
