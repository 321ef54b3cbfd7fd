//! Writes of a socket around another one, which only reads otherwise.

/// The methods of `tokio::io::AsyncWrite` for a type that hands all writes on to its field `$socket`,
/// which is `Unpin`. Call it in the `impl` block:
///
/// ```
/// use tokio::io::AsyncWrite;
///
/// struct Counted<S> {
///     socket: S,
/// }
///
/// impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
///     stoa_listen::write_through!(socket);
/// }
/// ```
#[macro_export]
macro_rules! write_through {
    ($socket:ident) => {
        fn poll_write(
            mut self: ::std::pin::Pin<&mut Self>,
            cx: &mut ::std::task::Context<'_>,
            bytes: &[u8],
        ) -> ::std::task::Poll<::std::io::Result<usize>> {
            ::std::pin::Pin::new(&mut self.$socket).poll_write(cx, bytes)
        }

        fn poll_flush(
            mut self: ::std::pin::Pin<&mut Self>,
            cx: &mut ::std::task::Context<'_>,
        ) -> ::std::task::Poll<::std::io::Result<()>> {
            ::std::pin::Pin::new(&mut self.$socket).poll_flush(cx)
        }

        fn poll_shutdown(
            mut self: ::std::pin::Pin<&mut Self>,
            cx: &mut ::std::task::Context<'_>,
        ) -> ::std::task::Poll<::std::io::Result<()>> {
            ::std::pin::Pin::new(&mut self.$socket).poll_shutdown(cx)
        }

        fn poll_write_vectored(
            mut self: ::std::pin::Pin<&mut Self>,
            cx: &mut ::std::task::Context<'_>,
            parts: &[::std::io::IoSlice<'_>],
        ) -> ::std::task::Poll<::std::io::Result<usize>> {
            ::std::pin::Pin::new(&mut self.$socket).poll_write_vectored(cx, parts)
        }

        fn is_write_vectored(&self) -> bool {
            self.$socket.is_write_vectored()
        }
    };
}
