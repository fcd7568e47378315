//! What is downloaded, where it is put, and what is asked of the server.

use super::{NAME, Scene, bytes, files, must_fail, server};
use attentive_hub::{Error, Need};
use std::fs;
use std::sync::atomic::Ordering;

const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

#[test]
fn a_model_is_put_where_pythons_tools_look_for_it_and_nothing_else_is_downloaded() {
    let scene = Scene::with_model("layout");
    let pulled = scene.pull(NAME).unwrap();
    assert_eq!((pulled.commit.as_str(), pulled.files), (A, 3));
    assert_eq!(pulled.bytes, 100_000 + 2 + 8);
    assert_eq!(scene.watch.received.load(Ordering::Relaxed), pulled.bytes);
    assert_eq!(scene.watch.planned.load(Ordering::Relaxed), pulled.bytes);

    let snapshot = scene.place().join("snapshots").join(A);
    assert_eq!(pulled.folder, snapshot);
    assert_eq!(files(&snapshot), ["config.json", "model.safetensors", "tokenizer.json"]);
    let weights = bytes(100_000, b'a');
    let link = fs::read_link(snapshot.join("model.safetensors")).unwrap();
    assert_eq!(link.to_str().unwrap(), format!("../../blobs/{}", server::hash(&weights)));
    assert_eq!(fs::read(snapshot.join("model.safetensors")).unwrap(), weights);
    assert_eq!(fs::read_to_string(scene.place().join("refs/main")).unwrap(), A);
    assert!(scene.place().join(format!(".no_exist/{A}/vocab.txt")).exists());
    let locks = files(&scene.home.join("hub/.locks/models--ada--engine"));
    assert!(locks.contains(&format!("{}.lock", server::hash(&weights))), "{locks:?}");
    assert_eq!(files(&scene.place().join("blobs")).len(), 3);
}

#[test]
fn a_model_that_is_there_is_found_without_asking() {
    let mut scene = Scene::with_model("found");
    let folder = scene.find(NAME).unwrap();
    scene.server.requests();
    assert_eq!(scene.find(NAME).unwrap(), folder);
    assert_eq!(scene.find(&format!("{NAME}@{A}")).unwrap(), folder);
    assert!(scene.server.requests().is_empty());
    scene.set("HF_HUB_OFFLINE", "1");
    assert_eq!(scene.find(NAME).unwrap(), folder);
    must_fail(scene.pull(NAME), &["HF_HUB_OFFLINE"]);
    must_fail(
        scene.find("ada/engin"),
        &["`ada/engin` is not in the cache", "HF_HUB_OFFLINE", "has `ada/engine`"],
    );
}

#[test]
fn pull_looks_for_a_newer_one_and_downloads_only_what_has_changed() {
    let scene = Scene::with_model("newer");
    let old = scene.pull(NAME).unwrap();
    assert_eq!(scene.pull(NAME).unwrap().bytes, 0);
    scene.add('b');
    assert_eq!(scene.find(NAME).unwrap(), old.folder);
    let new = scene.pull(NAME).unwrap();
    assert_eq!(new.bytes, 100_000);
    assert_ne!(new.folder, old.folder);
    assert_eq!(scene.find(NAME).unwrap(), new.folder);
    assert_eq!(scene.find(&format!("{NAME}@{A}")).unwrap(), old.folder);
}

#[test]
fn revisions_with_slashes_and_names_without_owner_are_asked_for() {
    let scene = Scene::with_model("revisions");
    scene.pull(&format!("{NAME}@refs/pr/1")).unwrap();
    assert_eq!(fs::read_to_string(scene.place().join("refs/refs/pr/1")).unwrap(), A);
    scene.server.add("single", 'c', &[("config.json", b"{}"), ("pytorch_model.bin", b"weights")]);
    let folder = scene.find("single").unwrap();
    assert_eq!(files(&folder), ["config.json", "pytorch_model.bin"]);
    must_fail(scene.pull(&format!("{NAME}@v2")), &["no revision `v2`"]);
}

#[test]
fn parts_of_weights_and_folders_of_pooling_are_downloaded() {
    let scene = Scene::new("parts");
    let index = br#"{"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}"#;
    let modules = br#"[{"type": "sentence_transformers.models.Transformer", "path": ""},
                       {"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"}]"#;
    let config: &[u8] = b"{}";
    let (one, two) = (bytes(5000, 1), bytes(6000, 2));
    let all: [(&str, &[u8]); 8] = [
        ("config.json", config),
        ("model.safetensors.index.json", index),
        ("model-1.safetensors", &one),
        ("model-2.safetensors", &two),
        ("model-3.safetensors", b"not named"),
        ("modules.json", modules),
        ("1_Pooling/config.json", b"{\"pooling\": 1}"),
        ("2_Dense/config.json", config),
    ];
    scene.server.add(NAME, 'a', &all);
    let folder = scene.find(NAME).unwrap();
    assert_eq!(
        files(&folder),
        [
            "1_Pooling/config.json",
            "config.json",
            "model-1.safetensors",
            "model-2.safetensors",
            "model.safetensors.index.json",
            "modules.json",
        ]
    );
    assert_eq!(fs::read(folder.join("1_Pooling/config.json")).unwrap(), b"{\"pooling\": 1}");
    // A part that is gone comes again.
    fs::remove_file(folder.join("model-2.safetensors")).unwrap();
    scene.server.requests();
    assert!(scene.find(NAME).unwrap().join("model-2.safetensors").exists());
    assert!(!scene.server.requests().is_empty());
}

#[test]
fn names_that_lead_out_of_the_folder_are_refused() {
    let config: &[u8] = b"{}";
    for bad in ["../../../../outside", "/etc/passwd", "..", "a/../../b", "..\\\\b"] {
        let scene = Scene::new("leaving");
        let index = format!(r#"{{"weight_map": {{"a": "{bad}"}}}}"#);
        let bad_name = bad.replace("\\\\", "\\");
        let all =
            [("config.json", config), ("model.safetensors.index.json", index.as_bytes()), (&bad_name, b"x")];
        scene.server.add(NAME, 'a', &all);
        must_fail(scene.find(NAME), &["model.safetensors.index.json", "no file of it"]);
        let modules = format!(r#"[{{"type": "x.Pooling", "path": "{bad}"}}]"#);
        let named = format!("{bad_name}/config.json");
        let all = [
            ("config.json", config),
            ("model.safetensors", config),
            ("modules.json", modules.as_bytes()),
            (&named, b"x"),
        ];
        scene.server.add(NAME, 'b', &all);
        must_fail(scene.find(NAME), &["modules.json", "no file of it"]);
        let written = files(&scene.home);
        assert!(!written.iter().any(|path| path.contains("outside") || path.ends_with("/b")), "{written:?}");
        assert!(!scene.place().join("refs/main").exists());
    }
}

#[test]
fn commits_and_hashes_that_would_leave_the_cache_are_refused() {
    let scene = Scene::with_model("hashes");
    scene.server.with(|state| state.models.get_mut(NAME).unwrap().commit = "../../../x".to_owned());
    must_fail(scene.find(NAME), &["without its commit"]);
    scene.add('a');
    scene.server.refuse("resolve", 200, &[("etag", "\"../../x\""), ("content-length", "2")]);
    must_fail(scene.find(NAME), &["config.json", "without its hash"]);
}

#[cfg(unix)]
#[test]
fn links_that_lead_out_of_the_cache_are_refused() {
    use std::os::unix::fs::symlink;
    let scene = Scene::with_model("links");
    let folder = scene.find(NAME).unwrap();
    let outside = scene.home.join("outside");
    fs::write(&outside, "secret").unwrap();
    fs::remove_file(folder.join("tokenizer.json")).unwrap();
    symlink(&outside, folder.join("tokenizer.json")).unwrap();
    must_fail(scene.find(NAME), &["tokenizer.json", "leads out of the cache"]);

    // The folder of a snapshot that leads elsewhere is not written into.
    fs::remove_dir_all(&folder).unwrap();
    fs::create_dir(scene.home.join("elsewhere")).unwrap();
    symlink(scene.home.join("elsewhere"), &folder).unwrap();
    must_fail(scene.find(NAME), &["leads out of the cache"]);
    assert!(files(&scene.home.join("elsewhere")).is_empty());
}

#[cfg(unix)]
#[test]
fn the_folder_of_a_model_may_be_a_link_to_another_disk() {
    let scene = Scene::with_model("disk");
    fs::create_dir_all(scene.home.join("hub")).unwrap();
    fs::create_dir_all(scene.home.join("large")).unwrap();
    std::os::unix::fs::symlink(scene.home.join("large"), scene.place()).unwrap();
    let folder = scene.find(NAME).unwrap();
    assert_eq!(scene.find(NAME).unwrap(), folder);
    must_fail(scene.hub().remove(&scene.name()), &["leads out of the cache"]);
}

#[test]
fn a_model_that_is_refused_is_not_downloaded() {
    let scene = Scene::with_model("refused");
    let refuse = |folder: &std::path::Path| {
        assert!(folder.join("config.json").exists());
        Err(Error::Unfit { name: "x".to_owned(), problem: "is of another family".to_owned() })
    };
    let pulled = scene.hub().pull(&scene.name(), Need::Model, &refuse, &scene.watch);
    must_fail(pulled, &["another family"]);
    assert!(scene.server.requests().iter().all(|request| !request.is_store));
    scene.server.add("no/config", 'a', &[("model.safetensors", b"x")]);
    must_fail(scene.find("no/config"), &["no config.json"]);
    scene.server.add("no/weights", 'a', &[("config.json", b"{}"), ("tf_model.h5", b"x")]);
    must_fail(scene.find("no/weights"), &["neither model.safetensors", "tf_model.h5"]);
}

#[test]
fn a_tokenizer_can_be_had_alone() {
    let scene = Scene::with_model("tokenizer");
    let hub = scene.hub();
    let find = || hub.find::<Error>(&scene.name(), Need::Tokenizer, &|_| Ok(()), &scene.watch).unwrap();
    assert_eq!(files(&find()), ["tokenizer.json"]);
    scene.server.requests();
    find();
    assert!(scene.server.requests().is_empty());
    // The rest comes when it is needed.
    assert_eq!(files(&scene.find(NAME).unwrap()).len(), 3);
}

#[test]
fn what_python_has_put_into_the_cache_is_used() {
    let mut scene = Scene::with_model("python");
    let folder = scene.find(NAME).unwrap();
    // Python's tools do not say that a file is missing before it is asked for.
    fs::remove_dir_all(scene.place().join(".no_exist")).unwrap();
    scene.server.requests();
    assert_eq!(scene.find(NAME).unwrap(), folder);
    assert_eq!(scene.server.requests().len(), 1);
    assert_eq!(scene.find(NAME).unwrap(), folder);
    assert!(scene.server.requests().is_empty());
    fs::remove_dir_all(scene.place().join(".no_exist")).unwrap();
    scene.set("HF_HUB_OFFLINE", "1");
    assert_eq!(scene.find(NAME).unwrap(), folder);
    scene.set("HF_HUB_OFFLINE", "0");
    scene.set("HF_ENDPOINT", "http://127.0.0.1:1");
    assert_eq!(scene.find(NAME).unwrap(), folder);
    assert!(scene.said().contains("using what the cache has"), "{}", scene.said());
}

#[test]
fn two_that_pull_at_the_same_time_wait_for_each_other() {
    let scene = Scene::with_model("two");
    scene.server.with(|state| state.moods.delay = Some(std::time::Duration::from_millis(50)));
    std::thread::scope(|scope| {
        let pulls: Vec<_> = (0..4).map(|_| scope.spawn(|| scene.pull(NAME))).collect();
        for pull in pulls {
            pull.join().unwrap().unwrap();
        }
    });
    let stored = scene.server.requests().into_iter().filter(|request| request.is_store);
    assert_eq!(stored.filter(|request| request.method == "GET").count(), 1);
    assert!(scene.said().contains("another process"), "{}", scene.said());
    scene.must_be_sound();
}

#[test]
fn models_are_listed_and_removed() {
    let scene = Scene::with_model("listed");
    assert!(scene.hub().models().unwrap().is_empty());
    scene.pull(NAME).unwrap();
    scene.add('b');
    scene.pull(NAME).unwrap();
    scene.server.add("other", 'c', &[("config.json", b"{}"), ("model.safetensors", b"weights")]);
    scene.pull("other").unwrap();
    fs::create_dir_all(scene.home.join("hub/datasets--x--y")).unwrap();

    let models = scene.hub().models().unwrap();
    let names: Vec<&str> = models.iter().map(|model| model.name.as_str()).collect();
    assert_eq!(names, [NAME, "other"]);
    let [old, new] = &models[0].snapshots[..] else { panic!("{models:?}") };
    assert_eq!((old.commit.as_str(), old.revisions.len(), old.bytes), (A, 0, 100_010));
    assert_eq!(new.revisions, ["main"]);
    assert!(new.used.is_some());

    let hub = scene.hub();
    let remove = |name: &str| hub.remove(&name.parse().unwrap()).map(|freed| freed.bytes);
    must_fail(remove("ada/engines"), &["`ada/engines` is not in the cache", "has `ada/engine`"]);
    must_fail(remove(&format!("{NAME}@v9")), &["@v9` is not in the cache"]);
    // Both commits share the small files.
    assert_eq!(remove(&format!("{NAME}@{A}")).unwrap(), 100_000);
    assert!(new.folder.join("tokenizer.json").exists() && !old.folder.exists());
    assert_eq!(scene.find(NAME).unwrap(), new.folder);
    assert!(remove(NAME).unwrap() >= 100_010);
    assert!(!scene.place().exists());
    assert_eq!(scene.hub().models().unwrap().len(), 1);
}

#[test]
fn a_model_that_is_being_downloaded_is_not_removed() {
    let scene = Scene::with_model("busy");
    scene.pull(NAME).unwrap();
    let locks = scene.home.join("hub/.locks/models--ada--engine");
    let lock = fs::File::open(locks.join(&files(&locks)[0])).unwrap();
    lock.lock().unwrap();
    must_fail(scene.hub().remove(&scene.name()), &["being downloaded"]);
    lock.unlock().unwrap();
    scene.hub().remove(&scene.name()).unwrap();
}
