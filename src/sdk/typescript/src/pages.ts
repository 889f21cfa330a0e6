/** A page of a list. */
export interface PageOf<T> {
  readonly data: readonly T[];
  readonly next_cursor: string | null;
}

/** A list that is read page by page. `for await` iterates over the rows of all pages. */
export class Pages<T> implements AsyncIterable<T> {
  readonly #read: (cursor: string | undefined) => Promise<PageOf<T>>;

  constructor(read: (cursor: string | undefined) => Promise<PageOf<T>>) {
    this.#read = read;
  }

  /** Reads one page: the first page, or the page of a `next_cursor`. */
  page(cursor?: string): Promise<PageOf<T>> {
    return this.#read(cursor);
  }

  async *[Symbol.asyncIterator](): AsyncIterator<T> {
    let cursor: string | undefined;
    do {
      const page = await this.#read(cursor);
      yield* page.data;
      cursor = page.next_cursor ?? undefined;
    } while (cursor !== undefined);
  }

  /** Reads the rows of all pages. */
  async all(): Promise<T[]> {
    const rows: T[] = [];
    for await (const row of this) rows.push(row);
    return rows;
  }
}
