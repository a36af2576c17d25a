import com.sun.management.OperatingSystemMXBean;
import java.io.BufferedReader;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.lucene.analysis.core.WhitespaceAnalyzer;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.StoredField;
import org.apache.lucene.document.TextField;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.BooleanClause;
import org.apache.lucene.search.BooleanQuery;
import org.apache.lucene.search.BoostQuery;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.ScoreDoc;
import org.apache.lucene.search.TermQuery;
import org.apache.lucene.search.similarities.BM25Similarity;
import org.apache.lucene.store.MMapDirectory;

/**
 * Indexes a collection with Lucene and times its searcher.
 *
 * <p>Lucene build CORPUS INDEX, or Lucene search INDEX QUERIES K SECONDS THREADS RANKINGS. Prints one JSON
 * object. Terms are parted at white space; BM25 has k1 0.9 and b 0.4; the index is merged to one segment.
 */
public final class Lucene {
  private static final Pattern RECORD = Pattern.compile("\"id\": \"(\\d+)\".*\"text\": \"([^\"]*)\"");

  public static void main(String[] args) throws Exception {
    if (args[0].equals("build")) {
      build(Path.of(args[1]), Path.of(args[2]));
    } else {
      search(args);
    }
  }

  private static void build(Path corpus, Path index) throws Exception {
    long start = System.nanoTime();
    IndexWriterConfig config = new IndexWriterConfig(new WhitespaceAnalyzer());
    config.setSimilarity(new BM25Similarity(0.9f, 0.4f));
    int n = 0;
    try (IndexWriter writer = new IndexWriter(new MMapDirectory(index), config);
        BufferedReader lines = Files.newBufferedReader(corpus)) {
      for (String line; (line = lines.readLine()) != null; n++) {
        Matcher m = RECORD.matcher(line);
        if (!m.find()) {
          throw new IllegalStateException("record " + n);
        }
        Document d = new Document();
        d.add(new StoredField("id", m.group(1)));
        d.add(new TextField("text", m.group(2), Field.Store.YES));
        writer.addDocument(d);
      }
      writer.forceMerge(1);
    }
    System.out.printf("{\"documents\": %d, \"seconds\": %.2f}%n", n, (System.nanoTime() - start) / 1e9);
  }

  private static Query query(String line) {
    Map<String, Integer> counts = new LinkedHashMap<>();
    for (String word : line.split(" ")) {
      counts.merge(word, 1, Integer::sum);
    }
    BooleanQuery.Builder b = new BooleanQuery.Builder();
    counts.forEach(
        (word, n) -> {
          Query q = new TermQuery(new Term("text", word));
          b.add(n == 1 ? q : new BoostQuery(q, n), BooleanClause.Occur.SHOULD);
        });
    return b.build();
  }

  private static void search(String[] args) throws Exception {
    int k = Integer.parseInt(args[3]);
    double seconds = Double.parseDouble(args[4]);
    int threads = Integer.parseInt(args[5]);
    List<Query> queries = new ArrayList<>();
    for (String line : Files.readAllLines(Path.of(args[2]))) {
      queries.add(query(line));
    }
    try (DirectoryReader reader = DirectoryReader.open(new MMapDirectory(Path.of(args[1])))) {
      IndexSearcher searcher = new IndexSearcher(reader);
      searcher.setSimilarity(new BM25Similarity(0.9f, 0.4f));
      searcher.setQueryCache(null);
      StringBuilder rankings = new StringBuilder();
      for (int warm = 0; warm < 5; warm++) {
        rankings.setLength(0);
        for (Query q : queries) {
          for (ScoreDoc d : searcher.search(q, k).scoreDocs) {
            rankings.append(reader.storedFields().document(d.doc).get("id")).append(' ');
          }
          rankings.append('\n');
        }
      }
      Files.writeString(Path.of(args[6]), rankings);
      AtomicInteger next = new AtomicInteger();
      CountDownLatch done = new CountDownLatch(threads);
      OperatingSystemMXBean system = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
      long cpu = system.getProcessCpuTime();
      long start = System.nanoTime();
      for (int t = 0; t < threads; t++) {
        new Thread(
                () -> {
                  try {
                    while ((System.nanoTime() - start) / 1e9 < seconds) {
                      searcher.search(queries.get(next.getAndIncrement() % queries.size()), k);
                    }
                  } catch (Exception e) {
                    e.printStackTrace();
                    System.exit(1);
                  }
                  done.countDown();
                })
            .start();
      }
      done.await();
      System.out.printf(
          "{\"queries\": %d, \"seconds\": %.3f, \"cpu_seconds\": %.3f}%n",
          next.get(), (System.nanoTime() - start) / 1e9, (system.getProcessCpuTime() - cpu) / 1e9);
    }
  }
}
