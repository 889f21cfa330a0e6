/** `{base_url}` is `{server_root}` with this path. */
export const BASE_PATH = "/api/v1";
