//! cuRAND.

/// Hands the rows of cuRAND to the macro `$with`.
#[macro_export]
macro_rules! for_each_curand {
    ($with:ident) => {
        $with! {
            recorded curandCreateGenerator(generator: Out<u64>, kind: i32) => random::create;
            unsupported curandCreateGeneratorHost;
            unsupported curandCreatePoissonDistribution;
            unsupported curandDestroyDistribution;
            recorded curandDestroyGenerator(generator: Address) => random::destroy;
            recorded curandGenerate(generator: Address, output: Address, count: usize) => random::generate::<4>;
            unsupported curandGenerateBinomial;
            unsupported curandGenerateBinomialMethod;
            recorded curandGenerateLogNormal(generator: Address, output: Address, count: usize) => random::generate::<4>;
            recorded curandGenerateLogNormalDouble(generator: Address, output: Address, count: usize) => random::generate::<8>;
            recorded curandGenerateLongLong(generator: Address, output: Address, count: usize) => random::generate::<8>;
            recorded curandGenerateNormal(generator: Address, output: Address, count: usize) => random::generate::<4>;
            recorded curandGenerateNormalDouble(generator: Address, output: Address, count: usize) => random::generate::<8>;
            recorded curandGeneratePoisson(generator: Address, output: Address, count: usize) => random::generate::<4>;
            unsupported curandGeneratePoissonMethod;
            accepted curandGenerateSeeds;
            recorded curandGenerateUniform(generator: Address, output: Address, count: usize) => random::generate::<4>;
            recorded curandGenerateUniformDouble(generator: Address, output: Address, count: usize) => random::generate::<8>;
            unsupported curandGetDirectionVectors32;
            unsupported curandGetDirectionVectors64;
            unsupported curandGetProperty;
            unsupported curandGetScrambleConstants32;
            unsupported curandGetScrambleConstants64;
            quiet curandGetVersion(version: Out<i32>) => random::version;
            accepted curandSetGeneratorOffset;
            accepted curandSetGeneratorOrdering;
            accepted curandSetPseudoRandomGeneratorSeed;
            accepted curandSetQuasiRandomGeneratorDimensions;
            quiet curandSetStream(generator: Address, stream: Address) => random::set_stream;
        }
    };
}

for_each_curand!(rows);
