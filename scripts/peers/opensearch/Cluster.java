// A real OpenSearch node in one process, for the test of the client against it:
//
//   java -cp 'LIB/*' Cluster.java DIR
//
// keeps its data in DIR, listens at a free port of this machine and prints that port;
// it ends with its standard input. LIB are the jars of pom.xml (see run.sh).
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.opensearch.analysis.common.CommonAnalysisPlugin;
import org.opensearch.common.logging.LogConfigurator;
import org.opensearch.common.settings.Settings;
import org.opensearch.env.Environment;
import org.opensearch.http.HttpServerTransport;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.node.Node;
import org.opensearch.transport.Netty4Plugin;

public class Cluster extends Node {
    Cluster(Environment environment) {
        super(environment, List.of(Netty4Plugin.class, CommonAnalysisPlugin.class), false);
    }

    public static void main(String[] args) throws Exception {
        Settings settings = Settings.builder()
            .put("path.home", Path.of(args[0]).toAbsolutePath().toString())
            .put("cluster.name", "trial").put("node.name", "trial")
            .put("discovery.type", "single-node")
            .put("transport.type", "netty4").put("http.type", "netty4")
            .put("http.port", "0").put("transport.port", "0")
            .put("cluster.routing.allocation.disk.threshold_enabled", false)
            .build();
        Environment environment = InternalSettingsPreparer.prepareEnvironment(settings, Map.of(), null, () -> "trial");
        LogConfigurator.configureWithoutConfig(settings);
        try (Cluster node = new Cluster(environment)) {
            node.start();
            System.out.println(node.injector().getInstance(HttpServerTransport.class).boundAddress().publishAddress().getPort());
            System.out.flush();
            while (System.in.read() >= 0) { }
        }
        System.exit(0);
    }
}
