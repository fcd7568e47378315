//! TLS with an authority of one's own, and proxies.
//!
//! The certificates to trust are read from the variable `SSL_CERT_FILE` of the process. A test that needs it runs itself again in a
//! process of its own.

use super::server::{ReadWrite, Server, Wrap};
use super::{NAME, Scene, must_fail};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A server whose certificate is for `host`, and the certificate of its authority.
fn server(host: &str) -> (Server, String) {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate =
        CertificateParams::new(vec![host.to_owned()]).unwrap().signed_by(&key, &authority).unwrap();
    let secret = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config =
        config.with_no_client_auth().with_single_cert(vec![certificate.der().clone()], secret).unwrap();
    let config = Arc::new(config);
    let wrap: Wrap = Arc::new(move |stream: TcpStream| {
        let connection = ServerConnection::new(Arc::clone(&config)).ok()?;
        Some(Box::new(StreamOwned::new(connection, stream)) as Box<dyn ReadWrite>)
    });
    (Server::start_with("https", "localhost", wrap), authority.pem())
}

/// Whether this is the process in which `SSL_CERT_FILE` is set. If not, the test is run there, with a server and an authority of its own,
/// whose certificate it writes to that file.
fn is_prepared(test: &str, pem: &str) -> bool {
    if std::env::var_os("ATTENTIVE_HUB_TLS").is_some() {
        std::fs::write(std::env::var_os("SSL_CERT_FILE").unwrap(), pem).unwrap();
        return true;
    }
    let path: PathBuf = std::env::temp_dir().join(format!(
        "attentive-hub-{}-{}.pem",
        test.replace(':', "-"),
        std::process::id()
    ));
    std::fs::write(&path, pem).unwrap();
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test])
        .env("ATTENTIVE_HUB_TLS", "1")
        .env("SSL_CERT_FILE", &path)
        .env_remove("SSL_CERT_DIR")
        .status()
        .unwrap();
    std::fs::remove_file(path).unwrap();
    assert!(status.success());
    false
}

#[test]
fn an_authority_that_nobody_trusts_is_refused() {
    let (server, _) = server("localhost");
    let scene = Scene::with("stranger", server);
    scene.add('a');
    must_fail(scene.find(NAME), &["certificate", "localhost", "SSL_CERT_FILE"]);
    assert!(!Path::new(&scene.place()).exists());
}

#[test]
fn an_authority_of_ssl_cert_file_is_trusted() {
    let (server, pem) = server("localhost");
    if !is_prepared("tls::an_authority_of_ssl_cert_file_is_trusted", &pem) {
        return;
    }
    let scene = Scene::with("authority", server);
    scene.add('a');
    scene.find(NAME).unwrap();
    scene.must_be_sound();
}

#[test]
fn a_certificate_of_another_host_is_refused() {
    let (server, pem) = server("example.org");
    if !is_prepared("tls::a_certificate_of_another_host_is_refused", &pem) {
        return;
    }
    let scene = Scene::with("other-host", server);
    scene.add('a');
    must_fail(scene.find(NAME), &["certificate", "localhost"]);
}

#[test]
fn a_redirect_to_a_server_without_encryption_is_refused() {
    let (server, pem) = server("localhost");
    if !is_prepared("tls::a_redirect_to_a_server_without_encryption_is_refused", &pem) {
        return;
    }
    let scene = Scene::with("downgrade", server);
    scene.add('a');
    scene.server.with(|state| state.moods.elsewhere = Some("http://127.0.0.1:1/x".to_owned()));
    must_fail(scene.find(NAME), &["without encryption"]);
}

/// A proxy that connects as it is asked to, counts, and wants a password.
fn proxy() -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (port, count) = (listener.local_addr().unwrap().port(), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&count);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let counted = Arc::clone(&counted);
            std::thread::spawn(move || {
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let (mut first, mut authorized) = (String::new(), false);
                reader.read_line(&mut first).unwrap();
                loop {
                    let mut line = String::new();
                    reader.read_line(&mut line).unwrap();
                    // ada:secret
                    authorized |= line.trim_end().ends_with("Basic YWRhOnNlY3JldA==");
                    if line.trim().is_empty() {
                        break;
                    }
                }
                if !authorized {
                    let _ = stream.write_all(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n");
                    return;
                }
                let Ok(mut target) = TcpStream::connect(first.split(' ').nth(1).unwrap()) else { return };
                counted.fetch_add(1, Ordering::Relaxed);
                stream.write_all(b"HTTP/1.1 200 Connected\r\n\r\n").unwrap();
                let (mut back, mut there) = (target.try_clone().unwrap(), stream.try_clone().unwrap());
                std::thread::spawn(move || std::io::copy(&mut back, &mut there));
                let _ = std::io::copy(&mut reader, &mut target);
            });
        }
    });
    (port, count)
}

#[test]
fn a_proxy_is_gone_through_unless_the_host_is_left_out() {
    let (server, pem) = server("localhost");
    if !is_prepared("tls::a_proxy_is_gone_through_unless_the_host_is_left_out", &pem) {
        return;
    }
    let (port, count) = proxy();
    let mut scene = Scene::with("proxy", server);
    scene.add('a');
    scene.set("HTTPS_PROXY", &format!("http://ada:wrong@127.0.0.1:{port}"));
    must_fail(scene.find(NAME), &["the proxy does not connect", "407"]);
    scene.set("HTTPS_PROXY", &format!("http://ada:secret@127.0.0.1:{port}"));
    scene.find(NAME).unwrap();
    assert!(count.load(Ordering::Relaxed) > 0);
    let before = count.load(Ordering::Relaxed);
    scene.set("NO_PROXY", "localhost");
    scene.pull(NAME).unwrap();
    assert_eq!(count.load(Ordering::Relaxed), before);
}
