import static suite.Suite.equal;
import static suite.Suite.setting;

import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.s3a.S3AFileSystem;
import org.apache.hadoop.io.IntWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.lib.input.FileInputFormat;
import org.apache.hadoop.mapreduce.lib.map.TokenCounterMapper;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;
import org.apache.hadoop.mapreduce.lib.reduce.IntSumReducer;

/** MapReduce jobs in this process, whose output S3A's committers publish by completing uploads. */
final class Jobs {
    private Jobs() {}

    static void counts(String committer) throws Exception {
        String in = "words-" + committer, out = "counts-" + committer;
        Yard.write(in + "/1", "green blue\ngreen".getBytes(StandardCharsets.UTF_8));
        Yard.write(in + "/2", "red green".getBytes(StandardCharsets.UTF_8));
        Configuration settings = Yard.settings();
        settings.set("mapreduce.framework.name", "local");
        settings.set("mapreduce.outputcommitter.factory.scheme.s3a", "org.apache.hadoop.fs.s3a.commit.S3ACommitterFactory");
        settings.set("fs.s3a.committer.name", committer);
        settings.set("fs.s3a.committer.staging.tmp.path", setting("SCRATCH") + "/staging");
        settings.set("hadoop.tmp.dir", setting("SCRATCH") + "/hadoop");
        Job job = Job.getInstance(settings, "counts");
        job.setMapperClass(TokenCounterMapper.class);
        job.setReducerClass(IntSumReducer.class);
        job.setOutputKeyClass(Text.class);
        job.setOutputValueClass(IntWritable.class);
        job.setNumReduceTasks(2);
        FileInputFormat.addInputPath(job, Yard.at(in));
        FileOutputFormat.setOutputPath(job, Yard.at(out));
        equal("succeeded", job.waitForCompletion(false), true);
        Map<String, String> found = new TreeMap<>();
        for (FileStatus part : Yard.FILES.globStatus(Yard.at(out + "/part-*"))) {
            new String(Yard.read(out + "/" + part.getPath().getName()), StandardCharsets.UTF_8).lines()
                    .map(line -> line.split("\t")).forEach(pair -> found.put(pair[0], pair[1]));
        }
        equal("counts", found, Map.of("blue", "1", "green", "3", "red", "1"));
        String done = new String(Yard.read(out + "/_SUCCESS"), StandardCharsets.UTF_8);
        equal("named in _SUCCESS", done.contains("\"committer\":\"" + committer + "\""), true);
        equal("what is left", Yard.below(out).stream().filter(name -> !name.startsWith("part-r-0000")).toList(),
                List.of("_SUCCESS"));
        equal("pending uploads", ((S3AFileSystem) Yard.FILES).listUploads(out).hasNext(), false);
    }
}
