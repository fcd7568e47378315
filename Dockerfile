# A translation server: docker build -t attentive . && docker run -p 8080:8080 attentive
# With a model of your own: docker run -p 8080:8080 -v "$PWD/en-de:/model:ro" attentive serve --host 0.0.0.0 --model en-de=/model

FROM rust:1.95-slim-bookworm AS build
WORKDIR /attentive
COPY . .
RUN cargo install --locked --path crates/cli --root /usr/local

FROM debian:bookworm-slim
COPY --from=build /usr/local/bin/attentive /usr/local/bin/attentive
# The certificates of the authorities, for models of the Hugging Face Hub: docker run attentive serve --host 0.0.0.0 --model OWNER/NAME
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates && rm -rf /var/lib/apt/lists/*
RUN useradd --create-home attentive
USER attentive
WORKDIR /home/attentive
EXPOSE 8080
ENTRYPOINT ["attentive"]
# 0.0.0.0 inside of the container: what the outside reaches is decided by `docker run -p`.
CMD ["serve", "--host", "0.0.0.0"]
