import { Component, type ReactNode } from "react";

import { ErrorNotice } from "./states.tsx";

/** Shows the error of a page that breaks, while the navigation stays usable. */
export class PageBoundary extends Component<
  { readonly children: ReactNode },
  { readonly error?: unknown }
> {
  override state: { readonly error?: unknown } = {};

  static getDerivedStateFromError(error: unknown) {
    return { error };
  }

  override render() {
    if (this.state.error === undefined) return this.props.children;
    return <ErrorNotice error={this.state.error} retry={() => location.reload()} />;
  }
}
