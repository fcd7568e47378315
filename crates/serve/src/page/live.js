// Answers that follow what is typed: a request begins when the reader pauses, and ends when the text has changed.

/** How long a reader must pause, in milliseconds. */
const PAUSE = 350;

export class Live {
  #work;
  #trouble;
  #underWay = null;
  #pause = null;

  /** `work(signal)` asks and shows; `trouble(error)` hears what went wrong, or null when all is well. */
  constructor(work, trouble) {
    this.#work = work;
    this.#trouble = trouble;
  }

  /** Works when the reader pauses. */
  soon() {
    this.stop();
    this.#pause = setTimeout(() => this.now(), PAUSE);
  }

  /** Works at once, on `work` or on something else that is ended by the same events. */
  async now(work = this.#work) {
    this.stop();
    const own = (this.#underWay = new AbortController());
    this.#trouble(null);
    try {
      await work(own.signal);
    } catch (error) {
      if (error.name !== "AbortError") this.#trouble(error);
    } finally {
      if (this.#underWay === own) this.#underWay = null;
    }
  }

  /** Ends what is under way, and what would have begun. */
  stop() {
    clearTimeout(this.#pause);
    this.#underWay?.abort();
    this.#underWay = null;
  }
}
